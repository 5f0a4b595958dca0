"""Notebooks 01, 09 and 10: load clients, load sales, and show doubtful clients."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from zoneinfo import ZoneInfo

from toolkit.contract.fields import pick_camel
from toolkit.intake import clients as clients_load
from toolkit.intake import sales as sales_load
from toolkit.intake.registration import (
    QUALITY_TEXTS,
    ClientQuality,
    Likeness,
)
from toolkit.intake.registration import client_quality as look_through
from toolkit.intake.results import (
    WARNINGS,
    LoadOptions,
    LoadResult,
    Repair,
    Understood,
)
from toolkit.intake.sales import SalesLoaded
from toolkit.kit.spoken import _, current_language, readable, translate
from toolkit.message import Message
from toolkit.notebooks.calls import (
    Bundle,
    Shown,
    application,
    cell_progress,
    figures,
    given_path,
    given_paths,
    links,
    remark,
    show,
    table,
    told_plainly,
)
from toolkit.samples.dataset import make_samples, write_samples


@told_plainly
def load_clients(
    files: str | Sequence[str] = (),
    *,
    dry_run: bool = False,
    out: str = "",
    headings: Mapping[str, str] | None = None,
    sheet: str = "",
) -> Shown[LoadResult]:
    """Register the clients in spreadsheets; what is wrong comes back under ``out`` (empty: beside each file).

    Without ``files`` it looks at the made-up clients of the sample, and stores nothing.
    """
    paths = given_paths(files)
    options = LoadOptions(
        headings=dict(headings or {}),
        sheet=sheet or None,
        language=current_language(),
    )
    with application() as opened, TemporaryDirectory(prefix="toolkit-sample-") as folder:
        if not paths:
            write_samples(make_samples(), Path(folder))
        result = clients_load.load_clients(
            opened.database,
            paths or [Path(folder, "clients.csv"), Path(folder, "clients.xlsx")],
            out=given_path(out) if out and paths else None,
            dry_run=dry_run or not paths,
            options=options,
            clock=opened.clock,
            progress=cell_progress(),
            announce=lambda understood: show(_remark(understood)),
        )
    counts = {
        "job": "load_clients",
        **pick_camel(result, "dry_run", "rows", "accepted", "rejected", "skipped"),
        "unreadable": list(result.unreadable),
        "needsAttention": bool((result.rejected or result.unreadable) and paths),
    }
    return Shown(result, _load_parts(result, opened.settings.timezone, made_up=not paths), counts)


def _remark(understood: Understood) -> Bundle:
    """Return the recognised layout of a file, told before its rows are read."""
    columns = ", ".join(f"{heading} → {name}" for heading, name in understood.fields.items())
    ignored = f" {_('Not used')}: {', '.join(understood.ignored)}." if understood.ignored else ""
    return remark(understood.source, Message("{}. Columns: {}.{}", understood.layout, columns, ignored))


def _load_parts(result: LoadResult, zone: ZoneInfo, *, made_up: bool) -> list[Bundle]:
    facts = {
        "rows": result.rows,
        "would be registered" if result.dry_run else "registered": result.accepted,
        "rejected": result.rejected,
        "skipped": result.skipped,
    }
    heading = _("Clients, checked only") if result.dry_run else _("Clients")
    parts = [
        figures(heading, facts, _hint(result, made_up=made_up)),
        _file_by_file(result, zone),
    ]
    parts += [remark("Not loaded", translate(reason)) for reason in result.unreadable]
    if result.rejected_files:
        parts.append(links("The rejected rows", result.rejected_files))
    if result.reasons:
        reasons = {translate(why): count for why, count in result.reasons.items()}
        parts.append(table("Why rows were rejected", ["reason", "rows"], reasons.items()))
        parts.append(_examples("The first rows with each reason", result, result.reasons))
    if result.repairs:
        repairs = {_(Repair(name).text): count for name, count in result.repairs.items()}
        parts.append(table("What was repaired, in rows that are fine", ["repair", "rows"], repairs.items()))
    if result.warnings:
        warned = {_(WARNINGS[name]): count for name, count in result.warnings.items()}
        parts.append(table("Doubtful, though valid", ["warning", "rows"], warned.items()))
        parts.append(_examples("The first rows with each warning", result, result.warnings))
    return parts


def _hint(result: LoadResult, *, made_up: bool) -> str:
    if made_up:
        return _("These clients are made up, and nothing was stored. Set files to load yours.")
    if not result.rejected_files:
        return _("No row was rejected.")
    return _("Correct the rejected rows in one of the files below and load that file. They hold personal data.")


def _file_by_file(result: LoadResult, zone: ZoneInfo) -> Bundle:
    columns = ["file", "read as", "rows", "accepted", "rejected", "skipped", "loaded before"]
    rows = [
        (
            file.source,
            file.understood.layout,
            file.tally.rows,
            file.tally.accepted,
            file.tally.rejected,
            file.tally.skipped,
            readable(file.already_loaded_at, zone) if file.already_loaded_at else "",
        )
        for file in result.files
    ]
    return table("File by file", columns, rows)


def _examples(heading: str, result: LoadResult, kinds: Iterable[str]) -> Bundle:
    rows = [
        (translate(WARNINGS.get(kind, kind)), source, line)
        for kind in kinds
        for source, line in result.examples.get(kind, ())
    ]
    return table(heading, ["reason", "file", "line"], rows)


@told_plainly
def client_quality(*, most: int = 500) -> Shown[ClientQuality]:
    """Look through the registered clients; nothing of a person is shown but the masked CPF.

    Of each likeness ``most`` groups of clients are named, the largest first.
    """
    with application() as opened:
        found = look_through(opened.database, opened.clock().astimezone(opened.settings.timezone).date(), most)
    repeated = found.groups.get(Likeness.SAME_CONTRACT, 0)
    counts = {
        "job": "client_quality",
        "clients": found.clients,
        "doubtful": dict(found.counts),
        "alike": {str(likeness): number for likeness, number in found.groups.items()},
        "needsAttention": repeated > 0,
    }
    return Shown(found, _quality_parts(found, repeated), counts)


def _quality_parts(found: ClientQuality, repeated: int) -> list[Bundle]:
    alike = sum(found.groups.values())
    facts = {
        "clients": found.clients,
        "registered more than once": repeated,
        "groups that are alike": alike,
    }
    parts = [figures("Registered clients", facts)]
    if found.counts:
        doubtful = {_(QUALITY_TEXTS[code]): number for code, number in found.counts.items()}
        parts.append(table("Doubtful or not there", ["warning", "clients"], doubtful.items()))
    if found.alike:
        groups = {_(likeness.text): number for likeness, number in found.groups.items()}
        parts.append(table("Groups of clients that are alike", ["what is the same", "groups"], groups.items()))
        columns = ["what is the same", "clients", "CPF, masked", "client ids"]
        rows = [
            (_(each.likeness.text), each.number, each.cpf or _("several"), ", ".join(each.client_ids))
            for each in found.alike
        ]
        parts.append(table("Clients that are alike", columns, rows, total=alike))
    return parts


@told_plainly
def load_sales(*, file: str = "", out: str = "", overwrite: bool = False) -> Shown[SalesLoaded | None]:
    """Take over the sales of a file; a shared database is only compared with it, unless ``overwrite`` is on."""
    if not file.strip():
        nothing = remark("No file was named", "Set file to a CSV or XLSX file of sales.")
        return Shown(None, [nothing], {"job": "load_sales", "rows": 0, "needsAttention": False})
    with application() as opened:
        loaded = sales_load.load_sales(
            opened.database,
            given_path(file),
            timezone=opened.settings.timezone,
            clock=opened.clock,
            write=overwrite or opened.database.embedded,
            out=given_path(out) if out.strip() else None,
            language=current_language(),
        )
    counts = {
        "job": "load_sales",
        **pick_camel(loaded, "rows", "inserted", "updated"),
        "rejected": len(loaded.rejected),
        "differing": len(loaded.differing),
        "needsAttention": bool(loaded.rejected or loaded.differing),
    }
    return Shown(loaded, _sales_parts(loaded), counts)


def _sales_parts(loaded: SalesLoaded) -> list[Bundle]:
    facts = {
        "rows": loaded.rows,
        "new": loaded.inserted,
        "updated": loaded.updated,
        "unchanged": loaded.unchanged,
        "rejected": len(loaded.rejected),
        "differ": len(loaded.differing),
    }
    parts = [figures("Sales", facts)]
    if loaded.rejected:
        parts.append(links("The rejected rows, to be corrected and loaded", loaded.rejected_files))
        rows = [
            (each.line, item.field, translate(item.message)) for each in loaded.rejected for item in each.invalid
        ]
        parts.append(table("Why rows were rejected", ["line", "field", "reason"], rows))
    if loaded.differing:
        differing = [
            (each.line, each.sale_id, ", ".join(each.fields) or _("not there")) for each in loaded.differing
        ]
        parts.append(table("Sales that differ, and were not written", ["line", "sale", "fields"], differing))
    return parts
