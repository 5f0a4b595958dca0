"""Notebook 09: take sales over from a file, or compare them with those of a shared database."""

from toolkit.domain.documents import named
from toolkit.entrypoints.notebooks.display import Colour, Fact, Facts, Files, Grid, Part, Shown
from toolkit.entrypoints.notebooks.notebook_errors import application, given_path, told_plainly
from toolkit.entrypoints.notebooks.progress_line import cell_progress
from toolkit.entrypoints.spoken import _, sentence, spoken
from toolkit.operations.register import sales_load
from toolkit.operations.register.sales_load import SalesLoaded


@told_plainly
def load_sales(*, file: str = "", out: str = "", overwrite: bool = False) -> Shown[SalesLoaded | None]:
    """Take over the sales of a file; a shared database is only compared with it, unless ``overwrite`` is on."""
    if not file.strip():
        nothing = Facts("No file was named", [], "Set file to a CSV or XLSX file of sales.")
        return Shown(None, [nothing], {"job": "load_sales", "rows": 0, "needsAttention": False})
    with application() as opened:
        loaded = sales_load.load_sales(
            opened.database,
            given_path(file),
            timezone=opened.settings.timezone,
            clock=opened.clock,
            write=overwrite or opened.database.embedded,
            out=given_path(out) if out.strip() else None,
            progress=cell_progress(),
            language=spoken(),
        )
    counts = {
        "job": "load_sales",
        **named(loaded, "rows", "inserted", "updated"),
        "rejected": len(loaded.rejected),
        "differing": len(loaded.differing),
        "needsAttention": bool(loaded.rejected or loaded.differing),
    }
    return Shown(loaded, _parts(loaded), counts)


def _parts(loaded: SalesLoaded) -> list[Part]:
    facts = [
        Fact("rows", loaded.rows),
        Fact("new", loaded.inserted, Colour.GOOD),
        Fact("updated", loaded.updated, Colour.GOOD),
        Fact("unchanged", loaded.unchanged, Colour.QUIET),
        Fact("rejected", len(loaded.rejected), Colour.BAD if loaded.rejected else Colour.QUIET),
        Fact("differ", len(loaded.differing), Colour.BAD if loaded.differing else Colour.QUIET),
    ]
    parts: list[Part] = [Facts("Sales", facts)]
    if loaded.rejected:
        parts.append(Files("The rejected rows, to be corrected and loaded", loaded.rejected_files))
        rows = [
            (each.line, item.field, sentence(item.message)) for each in loaded.rejected for item in each.invalid
        ]
        parts.append(Grid("Why rows were rejected", ["line", "field", "reason"], rows))
    if loaded.differing:
        differing = [
            (each.line, each.sale_id, ", ".join(each.fields) or _("not there")) for each in loaded.differing
        ]
        parts.append(Grid("Sales that differ, and were not written", ["line", "sale", "fields"], differing))
    return parts
