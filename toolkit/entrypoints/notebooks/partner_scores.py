"""Notebook 07: the partners, those with the most overdue findings first."""

import pandas as pd

from toolkit.entrypoints.auditing import audit
from toolkit.entrypoints.notebooks.display import (
    STATUS_COLOURS,
    Bars,
    Colour,
    Fact,
    Facts,
    Grid,
    Part,
    Remark,
    Shown,
)
from toolkit.entrypoints.notebooks.notebook_errors import application, told_plainly
from toolkit.entrypoints.notebooks.progress_line import cell_progress
from toolkit.entrypoints.snapshot_auditing import audit_of_snapshot, engine_of
from toolkit.entrypoints.spoken import _, readable, spoken
from toolkit.entrypoints.timestamps import parse_timestamp
from toolkit.reports.notices import notices


@told_plainly
def partner_scores(
    *, as_of: str = "", sync: bool = True, snapshot: str = "", engine: str = ""
) -> Shown[pd.DataFrame]:
    """Judge all sales, of the database or of a snapshot, and show the findings that each partner has to act on."""
    with application() as opened:
        zone = opened.settings.timezone
        moment = parse_timestamp(as_of, timezone=zone, now=opened.clock()) if as_of.strip() else None
        judge = engine_of(engine, snapshot)
        if judge is None:
            result = audit(opened, as_of=moment, sync=sync, with_file_findings=True, progress=cell_progress())
        else:
            result = audit_of_snapshot(opened, snapshot, judge, as_of=moment, with_file_findings=True)
        board = result.partners
        remarks = [Remark("Note", text) for text in notices(result, spoken(), zone)]
    overdue = int(board["overdue"].sum())
    counts = {"job": "partner_scores", "partners": len(board), "overdue": overdue, "needsAttention": overdue > 0}
    return Shown(board, [*_parts(board, readable(result.as_of, zone)), *remarks], counts)


def _parts(board: pd.DataFrame, as_of: str) -> list[Part]:
    findings, overdue = int(board["findings"].sum()), int(board["overdue"].sum())
    facts = [
        Fact("partners", len(board)),
        Fact("findings", findings),
        Fact("overdue", overdue, Colour.BAD if overdue else Colour.GOOD),
    ]
    parts: list[Part] = [Facts("Partners", facts, f"{_('As of')} {as_of}.")]
    if not len(board):
        return parts
    named = board.assign(partner=board["partner"].replace("", _("no partner")))
    sales = named.head(Bars.MOST).set_index("partner")[list(STATUS_COLOURS)].to_dict("index")
    parts.append(Bars("Their sales", sales))  # type: ignore[arg-type]
    rows = named.astype(object).where(named.notna(), "").to_numpy().tolist()
    parts.append(Grid("All partners, those with the most overdue findings first", list(named.columns), rows))
    return parts
