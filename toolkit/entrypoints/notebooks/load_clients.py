"""Notebook 01: register the clients of spreadsheets, and show what is wrong with the others."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from zoneinfo import ZoneInfo

from toolkit.domain.documents import named
from toolkit.entrypoints.notebooks.display import Bars, Colour, Fact, Facts, Files, Grid, Part, Remark, Shown, show
from toolkit.entrypoints.notebooks.notebook_errors import (
    application,
    given_path,
    given_paths,
    in_parameters,
    told_plainly,
)
from toolkit.entrypoints.notebooks.progress_line import cell_progress
from toolkit.entrypoints.spoken import _, readable, sentence, spoken
from toolkit.errors import SettingsError
from toolkit.operations.register import bulk_load
from toolkit.operations.register.bulk_load import (
    WARNINGS,
    LoadOptions,
    LoadResult,
    OnDuplicate,
    Repair,
    Understood,
)
from toolkit.samples.dataset import make_samples
from toolkit.samples.folder import write_samples


@told_plainly
def load_clients(
    files: str | Sequence[str] = (),
    *,
    dry_run: bool = False,
    out: str = "",
    strict: bool = False,
    pad_cpf: bool = False,
    on_duplicate: str = "skip",
    warnings_as_errors: bool = False,
    headings: Mapping[str, str] | None = None,
    encoding: str = "",
    delimiter: str = "",
    sheet: str = "",
) -> Shown[LoadResult]:
    """Register the clients in spreadsheets; what is wrong comes back under ``out`` (empty: beside each file).

    Without ``files`` it looks at the made-up clients of the sample, and stores nothing.
    """
    paths = given_paths(files)
    options = LoadOptions(
        strict=strict,
        pad_cpf=pad_cpf,
        on_duplicate=_on_duplicate(on_duplicate),
        warnings_as_errors=warnings_as_errors,
        headings=dict(headings or {}),
        encoding=encoding or None,
        delimiter=delimiter or None,
        sheet=sheet or None,
        language=spoken(),
    )
    with application() as opened, TemporaryDirectory(prefix="toolkit-sample-") as folder:
        if not paths:
            write_samples(make_samples(), Path(folder))
        result = bulk_load.load_clients(
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
        **named(result, "dry_run", "rows", "accepted", "rejected", "skipped"),
        "unreadable": list(result.unreadable),
        "needsAttention": bool((result.rejected or result.unreadable) and paths),
    }
    return Shown(result, _parts(result, opened.settings.timezone, made_up=not paths), counts)


def _on_duplicate(given: str) -> OnDuplicate:
    try:
        return OnDuplicate(given)
    except ValueError:
        raise SettingsError(f"on_duplicate must be one of {', '.join(OnDuplicate)}") from None


def _remark(understood: Understood) -> Remark:
    """Return the recognised layout of a file, told before its rows are read."""
    columns = ", ".join(f"{heading} → {name}" for heading, name in understood.fields.items())
    ignored = f" {_('Not used')}: {', '.join(understood.ignored)}." if understood.ignored else ""
    return Remark(understood.source, f"{understood.layout}. Columns: {columns}.{ignored}")


def _parts(result: LoadResult, zone: ZoneInfo, *, made_up: bool) -> list[Part]:
    facts = [
        Fact("rows", result.rows),
        Fact("would be registered" if result.dry_run else "registered", result.accepted, Colour.GOOD),
        Fact("rejected", result.rejected, Colour.BAD if result.rejected else Colour.QUIET),
        Fact("skipped", result.skipped, Colour.QUIET),
    ]
    heading = _("Clients, checked only") if result.dry_run else _("Clients")
    parts: list[Part] = [Facts(heading, facts, _hint(result, made_up=made_up)), _file_by_file(result, zone)]
    parts += [Remark("Not loaded", in_parameters(sentence(reason))) for reason in result.unreadable]
    if result.rejected_files:
        parts.append(Files("The rejected rows", result.rejected_files))
    if result.reasons:
        reasons = {sentence(why): count for why, count in result.reasons.items()}
        parts.append(Bars.ranked("Why rows were rejected", reasons, Colour.BAD))
        parts.append(_examples("The first rows with each reason", result, result.reasons))
    if result.repairs:
        repairs = {_(Repair(name).text): count for name, count in result.repairs.items()}
        parts.append(Bars.ranked("What was repaired, in rows that are fine", repairs, Colour.NEUTRAL))
    if result.warnings:
        warned = {_(WARNINGS[name]): count for name, count in result.warnings.items()}
        parts.append(Bars.ranked("Doubtful, though valid", warned, Colour.WARNING))
        parts.append(_examples("The first rows with each warning", result, result.warnings))
    return parts


def _hint(result: LoadResult, *, made_up: bool) -> str:
    if made_up:
        return _("These clients are made up, and nothing was stored. Set files to load yours.")
    if not result.rejected_files:
        return _("No row was rejected.")
    return _("Correct the rejected rows in one of the files below and load that file. They hold personal data.")


def _file_by_file(result: LoadResult, zone: ZoneInfo) -> Grid:
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
    return Grid("File by file", columns, rows)


def _examples(heading: str, result: LoadResult, kinds: Iterable[str]) -> Grid:
    rows = [
        (sentence(WARNINGS.get(kind, kind)), example.source, example.line, example.value)
        for kind in kinds
        for example in result.examples.get(kind, ())
    ]
    return Grid(heading, ["reason", "file", "line", "cell, masked"], rows)
