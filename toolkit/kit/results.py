"""Show what loads, credentials, uploads, the bucket and completions returned, to people and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from toolkit.contract.codes import CODES, WRONG_KIND
from toolkit.contract.contents import ContentProblem
from toolkit.contract.fields import pick_camel
from toolkit.contract.resources import QualityWarning
from toolkit.errors import InvalidInput
from toolkit.intake.registration import ClientQuality, Likeness
from toolkit.kit.shown import Part, Shown, figures, links, remark, say, table, worded
from toolkit.kit.spoken import _, counted, readable
from toolkit.message import Message

if TYPE_CHECKING:
    import pandas as pd

    from toolkit.audit.object_history import Synced
    from toolkit.evidence.completion import Completion
    from toolkit.evidence.contents import Verified
    from toolkit.evidence.credentials import ManifestResult
    from toolkit.evidence.upload import Uploaded
    from toolkit.intake.results import FileLoaded, LoadResult, Tally
    from toolkit.intake.sales import SalesLoaded
    from toolkit.intake.tables import Rejected
    from toolkit.kit.services import Services

    Given = str | Path | Sequence[str | Path] | pd.DataFrame
    """Files, or a DataFrame with their columns."""

S = TypeVar("S", bound=Shown[Any])


def shown_clients(result: LoadResult) -> Shown[LoadResult]:
    """Show the load of client files: each file, then every reason, repair and warning with examples."""
    from toolkit.intake.results import Repair

    parts = [part for file in result.files for part in _of_file(file, dry_run=result.dry_run)]
    if len(result.files) > 1:
        parts.append(figures(counted(result.rows, "row"), _tallied(result, dry_run=result.dry_run)))
    texts = {str(each): each.text for each in (*Repair, *QualityWarning)}
    parts += _why("Why rows were rejected", "reason", result, result.reasons, texts)
    parts += _why("What was repaired, in rows that are fine", "repaired", result, result.repairs, texts)
    parts += _why("Doubtful, though valid", "warning", result, result.warnings, texts)
    parts += [remark("not loaded", reason) for reason in result.unreadable]
    attention = bool(result.rejected or result.unreadable)
    return Shown(result, parts, result.document(), attention)


def _tallied(tally: Tally, *, dry_run: bool) -> dict[str, int]:
    done = _("would be registered") if dry_run else _("registered")
    return {done: tally.accepted, _("rejected"): tally.rejected, _("skipped"): tally.skipped}


def _of_file(file: FileLoaded, *, dry_run: bool) -> Iterator[Part]:
    """Yield the counts of a file, how it was read, and the files that came back."""
    heading = Message("{}: {}", file.source, counted(file.rows, "row"))
    yield figures(heading, _tallied(file, dry_run=dry_run))
    yield say(file.understood, aside=True)
    if file.already_loaded_at is not None:
        yield say("these contents were loaded at {}; nothing changed", readable(file.already_loaded_at))
    for what, paths in ((_("rejected rows"), file.rejected_files), (_("skipped rows"), [file.skipped_file])):
        if there := [path for path in paths if path is not None]:
            yield links(what, there)
    for note in file.notes:
        yield say(note)


def _why(
    heading: str, of: str, result: LoadResult, counts: Mapping[str, int], texts: Mapping[str, str]
) -> Iterator[Part]:
    """Show how many rows have each reason, repair or warning, and the first of them."""
    rows, lines, several = [], [], len(result.files) > 1
    for each, count in counts.items():
        text, examples = _(texts.get(each, each)), result.examples.get(each, ())
        places = "; ".join(f"{f'{source} ' if several else ''}{_('line')} {line}" for source, line in examples)
        rows.append((text, count, places) if places else (text, count))
        mark = "" if of == "reason" else f"{_(of)}: "
        lines.append(f"{worded(count):>9} × {mark}{text}" + (f" ({places})" if places else ""))
    if rows:
        columns = [of, "rows", _("first lines")][: len(rows[0])]
        yield replace(table(heading, columns, rows), text="\n".join(lines))


def shown_quality(found: ClientQuality) -> Shown[ClientQuality]:
    """Show doubtful clients, and those that are alike."""
    repeated, alike = found.groups.get(Likeness.SAME_CONTRACT, 0), sum(found.groups.values())
    facts = {"clients": found.clients, "registered more than once": repeated, "groups that are alike": alike}
    parts = [figures("Registered clients", facts)]
    if found.counts:
        doubtful = {_(QualityWarning(code).text): number for code, number in found.counts.items()}
        parts.append(table("Doubtful or not there", ["warning", "clients"], doubtful.items()))
    if found.alike:
        groups = {_(likeness.text): number for likeness, number in found.groups.items()}
        parts.append(table("Groups of clients that are alike", ["what is the same", "groups"], groups.items()))
        columns = ["what is the same", "clients", "CPF, masked", "client ids"]
        rows = [
            (_(Likeness(each.likeness).text), each.number, each.cpf or _("several"), ", ".join(each.client_ids))
            for each in found.alike
        ]
        parts.append(table("Clients that are alike", columns, rows, total=alike))
    document = pick_camel(found, "clients", "counts", "groups") | {
        "alike": [pick_camel(each, "likeness", "number", "cpf", "client_ids") for each in found.alike]
    }
    return Shown(found, parts, document, repeated > 0)


def shown_sales(loaded: SalesLoaded, name: str) -> Shown[SalesLoaded]:
    """Show the load of a file of sales."""
    facts = {
        "not known before": loaded.inserted,
        "updated": loaded.updated,
        "unchanged": loaded.unchanged,
        "rejected": len(loaded.rejected),
        "that differ and were not written": len(loaded.differing),
    }
    parts = [figures(Message("{}: {}", name, counted(loaded.rows, "sale")), facts)]
    lines, rejected = of_rejected(loaded.rejected, loaded.rejected_files)
    parts += lines
    if loaded.differing:
        differing = [
            (each.line, each.sale_id, ", ".join(each.fields) or _("is not in the service's sales"))
            for each in loaded.differing
        ]
        parts.append(table("Sales that differ, and were not written", ["line", "sale", "fields"], differing))
    document = {
        **pick_camel(loaded, "rows", "inserted", "updated", "unchanged"),
        **rejected,
        "differing": len(loaded.differing),
        "differingRows": [pick_camel(row, "line", "sale_id", "fields") for row in loaded.differing],
    }
    attention = bool(loaded.rejected or loaded.differing)
    return Shown(loaded, parts, document, attention)


def of_rejected(rejected: Rejected, files: Sequence[Path] = ()) -> tuple[list[Part], dict[str, Any]]:
    """Show why rows were rejected, and where they are written to be corrected; nothing where none was."""
    found = {line: [pick_camel(each, "field", "message") for each in wrong] for line, wrong in rejected.items()}
    rows = [(line, each["field"], _(each["message"])) for line, errors in found.items() for each in errors]
    parts = [table("Why rows were rejected", ["line", "field", "reason"], rows)] if rows else []
    parts += [links("The rejected rows, to be corrected and loaded", files)] if files else []
    listed = [{"line": line, "errors": errors} for line, errors in found.items()]
    return parts, {"rejected": len(rejected), "rejectedRows": listed, "rejectedFiles": files}


def shown_request(manifest: ManifestResult, name: str, out: Path) -> Shown[ManifestResult]:
    """Show the credentials for a manifest: where they are, and never what they are."""
    heading = Message("{}: {}", name, counted(manifest.rows, "row"))
    wrong, rejected = of_rejected(manifest.rejected)
    if wrong:
        facts = {"rejected": len(manifest.rejected)}
        parts = [figures(heading, facts, "Nothing was issued. Correct the rows below and run again."), *wrong]
    else:
        facts = {
            "issued": manifest.issued,
            "issued again": manifest.reissued,
            "already uploaded": len(manifest.skipped),
        }
        kept = Message("The credentials are in {}, which only you can read.", out)
        parts = [figures(heading, facts, kept)]
        if manifest.skipped:
            parts.append(table("Uploaded before", ["line", "id"], manifest.skipped))
    document = {
        **pick_camel(manifest, "rows", "issued", "reissued"),
        "skipped": len(manifest.skipped),
        "out": None if wrong else out,
        "skippedRows": [{"line": line, "id": each} for line, each in manifest.skipped],
        **rejected,
    }
    return Shown(manifest, parts, document, bool(wrong))


def shown_upload(uploaded: Uploaded, name: str) -> Shown[Uploaded]:
    """Show which files were sent, and which were not."""
    facts = {"sent": uploaded.sent, "sent before": uploaded.skipped, "failed": len(uploaded.failures)}
    parts = [figures(Message("{}: {}", name, counted(uploaded.files, "file")), facts)]
    found = [pick_camel(each, "line", "sale_id", "file_name", "problem", "message") for each in uploaded.failures]
    if found:
        columns = ["line", "saleId", "fileName", "problem", "what was found"]
        rows = [(*each.values(),) for each in found]
        parts.append(table("Not uploaded", columns, [(*row, _(message)) for *row, message in rows]))
    document = {**pick_camel(uploaded, "files", "sent", "skipped"), "failed": len(found), "failures": found}
    return Shown(uploaded, parts, document, bool(uploaded.failures))


def shown_sync(synced: Synced, *, inventory: bool) -> Shown[Synced]:
    """Show what a reading of the bucket found."""
    heading = counted(synced.listed, "object") + ("" if synced.full else f" {_('looked at')}")
    facts = {"new": synced.appeared, "overwritten": synced.changed, "vanished": synced.vanished}
    facts |= {"examined": synced.examined}
    parts = [figures(heading, facts)]
    since = synced.listed_since
    if inventory:
        oldest = readable(since) if since else _("never")
        parts.append(remark("note", "the oldest part of the listing is of {}", oldest))
    if synced.lacking:
        lacking = counted(synced.lacking, "object")
        note = Message(
            "the inventory lacks {} written days before it: it tells of a part of the bucket only", lacking
        )
        parts.append(remark("note", note))
    document = {
        **pick_camel(synced, "full", "listed", "appeared", "changed", "vanished", "examined", "asked", "lacking"),
        "archived": len(synced.archived),
        "unreadable": len(synced.unreadable),
        "listedSince": since,
    }
    return Shown(synced, [*parts, *unread(synced)], document, bool(synced.archived or synced.unreadable))


def unread(synced: Synced | None) -> list[Part]:
    """Show how many objects a reading of the bucket could not read, and why, with an example of each."""
    if synced is None:
        return []
    reasons = (
        (synced.archived, _("archived, and must be restored before they can be read")),
        (synced.unreadable, _("not readable (the right s3:GetObject may be missing), or perhaps not there")),
    )
    # The name of the file itself may be the name of a person.
    return [
        remark(counted(len(keys), "object"), "{}, for example below {}", why, f"{keys[0].rpartition('/')[0]}/")
        for keys, why in reasons
        if keys
    ]


def shown_contents(verified: Verified) -> Shown[Verified]:
    """Show what a verification found in files."""
    facts = {"unusable": verified.unusable, "unreadable": verified.unreadable, "left": verified.left}
    heading = Message("{} verified", counted(verified.verified, "file"))
    parts = [figures(heading, facts)]
    problems = [*sorted(verified.problems.items()), (WRONG_KIND, verified.wrong_kind)]
    failures = [(each, number, _(each.text)) for each, number in sorted(verified.failures.items())]
    found = [(each, number, _(CODES[each].meaning)) for each, number in problems if number] + failures
    if found:
        parts.append(table("What is wrong with unusable files", ["problem", "files", "meaning"], found))
    document = {
        **pick_camel(verified, "verified", "unusable"),
        "problems": {problem: verified.problems.get(problem, 0) for problem in ContentProblem},
        **pick_camel(verified, "wrong_kind", "left"),
        "failures": dict(verified.failures),
    }
    return Shown(verified, parts, document, bool(verified.unusable or verified.left))


def shown_completion(done: Completion) -> Shown[Completion]:
    """Show whether a sale is completed, or why it cannot be."""
    completed, parts, verdict = done.completed_at is not None, [], done.verdict
    document: dict[str, Any] = {"saleId": done.sale_id, "completed": completed}
    document |= pick_camel(done, "already", "completed_at")
    if done.completed_at is not None:
        said = say("{}: completed", done.sale_id)
        if done.already:
            said = say("{}: was completed before, at {}", done.sale_id, readable(done.completed_at))
        parts.append(said)
    if verdict is not None:
        if not completed:
            message = Message("{} cannot be completed, its status is {}", done.sale_id, _(verdict.status))
            parts.append(remark("toolkit", message))
            why = [Message("  {} is missing: {}", piece.evidence_type, piece.reason) for piece in verdict.missing]
            why += [Message("  {}: {}", problem, _(CODES[problem].meaning)) for problem in verdict.problems]
            parts += [say(each, aside=True) for each in why]
        document |= {
            "status": verdict.status,
            "missing": [pick_camel(piece, "evidence_type", "reason") for piece in verdict.missing],
            "problems": list(verdict.problems),
        }
    return Shown(done, parts, document, not completed)


@contextmanager
def files_given(
    kit: Services, given: Given, out: str | Path | None = None, *, several: bool = False
) -> Iterator[tuple[list[Path], Path | None, Callable[[S], S]]]:
    """Yield the files that are given, or one with the contents of a DataFrame, which is there during the block.

    What the block returns goes through the third: the rejected rows of a DataFrame are read before they go.

    Raises:
        InvalidInput: no file is named, or more than one and not ``several`` are taken.
    """
    import pandas as pd

    folder = kit.path(out) if out else None
    if not isinstance(given, pd.DataFrame):
        named = given if isinstance(given, Sequence) and not isinstance(given, str) else [given]
        paths = [kit.path(each) for each in named if isinstance(each, (str, Path)) and str(each).strip()]
        if not paths or len(paths) < len(named):
            raise InvalidInput("Name a file: a CSV or XLSX file, or give a DataFrame.")
        if len(paths) > 1 and not several:
            raise InvalidInput("Name one file only, not {}.", len(paths))
        yield paths, folder, lambda shown: shown
        return
    # convert_dtypes, by which whole numbers stay whole beside empty cells, knows few types of Arrow.
    arrow = {name: object for name, kind in given.dtypes.items() if str(kind).endswith("[pyarrow]")}
    text = given.astype(arrow).convert_dtypes().to_csv(index=False).encode()
    with kit.scratch() as place:
        path = place / f"frame-{sha256(text).hexdigest()[:8]}.csv"
        path.write_bytes(text)

        def kept(shown: S) -> S:
            rejected = shown.rejected  # before its files go, unless there is a folder for them
            if folder is None:
                parts = [part for part in shown.parts if str(place) not in part.text]
                if len(rejected):
                    parts.append(say("The rejected rows, to be corrected and loaded, are in rejected."))
                shown = replace(shown, parts=parts, document={**shown.document, "rejectedFiles": []})
                vars(shown)["rejected"] = rejected
            return shown

        yield [path], folder or place, kept
