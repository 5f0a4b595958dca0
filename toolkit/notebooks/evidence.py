"""Notebooks 02 and 08: request credentials and upload files; verify the contents of files."""

from pathlib import Path

from toolkit.audit.observe_bucket import sync_bucket
from toolkit.contract.fields import pick_camel
from toolkit.evidence.bulk_credentials import ManifestResult, Order, request_manifest
from toolkit.evidence.contents import Verified, verify_contents
from toolkit.evidence.credentials import UploadLimits
from toolkit.evidence.upload import Destinations, Uploaded, upload_files
from toolkit.kit.context import ApplicationContext
from toolkit.kit.process import signed_in_account
from toolkit.kit.spoken import _, counted, translate
from toolkit.message import Message
from toolkit.notebooks.calls import (
    Bundle,
    Shown,
    application,
    cell_progress,
    figures,
    given_path,
    remark,
    table,
    told_plainly,
)


@told_plainly
def request_credentials(
    manifest: str = "",
    *,
    files: str = "",
    upload: bool = True,
    credentials_file: str = "",
    requested_by: str = "",
) -> Shown[ManifestResult | None]:
    """Ask for upload credentials for each row of a manifest, and send the files.

    ``files`` is the folder with ``saleId/fileName``, by default the one named ``files`` beside the manifest. The
    credentials go to ``credentials_file`` (in ``TOOLKIT_HOME`` where it is empty), never into the notebook.
    Without a manifest nothing happens.
    """
    if not manifest:
        return Shown(None, _nothing_named(), {"job": "request_credentials", "rows": 0, "needsAttention": False})
    source = given_path(manifest)
    progress = cell_progress()
    with application() as opened:
        out = given_path(credentials_file) if credentials_file else _private_file(opened, source)
        order = Order(
            requested_by or signed_in_account(),
            UploadLimits(opened.settings.upload_ttl, opened.settings.upload_max_bytes),
            opened.clock,
            signed_in_account(),
            progress,
        )
        requested = request_manifest(opened.database, opened.bucket, source, out, order)
    folder = given_path(files) if files else source.parent / "files"
    uploaded = None
    if upload and not requested.rejected:
        uploaded = upload_files(out, folder, progress=progress, destinations=Destinations.of(opened.settings))
    counts = {
        "job": "request_credentials",
        **pick_camel(requested, "rows", "issued", "reissued"),
        "skipped": len(requested.skipped),
        "rejected": len(requested.rejected),
        "uploaded": uploaded.sent if uploaded else 0,
        "failed": len(uploaded.failures) if uploaded else 0,
        "needsAttention": bool(requested.rejected or (uploaded and uploaded.failures)),
    }
    return Shown(requested, _request_parts(requested, out, uploaded), counts)


def _private_file(opened: ApplicationContext, source: Path) -> Path:
    folder = opened.credentials_folder
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder / f"{source.stem}.jsonl"


def _nothing_named() -> list[Bundle]:
    columns = ["saleId", "fileName", "fileFormat", "type", "evidenceType"]
    rows = [
        ["V-2026-00001", "identidade.pdf", "application/pdf", "application/pdf", "DOC_CONTRATANTE"],
        ["V-2026-00001", "confirmacao-de-voz.mp3", "audio/mpeg", "audio/mpeg", "POV"],
    ]
    advice = _("Nothing was requested. Set manifest to a CSV or XLSX file like the one below, and run again.")
    return [remark("No manifest named", advice), table("A manifest", columns, rows)]


def _request_parts(manifest: ManifestResult, credentials_file: Path, uploaded: Uploaded | None) -> list[Bundle]:
    if manifest.rejected:
        return _rejected(manifest)
    facts = {
        "credentials issued": manifest.issued,
        "issued again": manifest.reissued,
        "uploaded before": len(manifest.skipped),
    }
    if uploaded is not None:
        facts |= {"uploaded now": uploaded.sent, "not uploaded": len(uploaded.failures)}
    kept = translate(Message("The credentials are in {}, which only you can read.", credentials_file))
    parts = [figures(counted(manifest.rows, "file"), facts, kept)]
    if uploaded is not None and uploaded.failures:
        columns = ["saleId", "fileName", "problem", "what was found"]
        failed = [
            (each.sale_id, each.file_name, each.problem, translate(each.message)) for each in uploaded.failures
        ]
        parts.append(table("Not uploaded", columns, failed))
    return parts


def _rejected(manifest: ManifestResult) -> list[Bundle]:
    facts = {"rows": manifest.rows, "rejected": len(manifest.rejected)}
    rows = [(row.line, item.field, translate(item.message)) for row in manifest.rejected for item in row.invalid]
    return [
        figures("Wrong rows", facts, "Nothing was issued. Correct the rows below and run again."),
        table("What is wrong", ["line", "field", "reason"], rows),
    ]


@told_plainly
def content_verification(*, minutes: int = 10) -> Shown[Verified]:
    """Read the files that were not verified yet for at most so many minutes, and tell what is wrong with them."""
    with application() as opened:
        progress = cell_progress()
        sync_bucket(opened.database, opened.bucket, clock=opened.clock, progress=progress)
        verified = verify_contents(
            opened.database,
            opened.bucket,
            clock=opened.clock,
            seconds=minutes * 60,
            progress=progress,
        )
    counts = {
        "job": "content_verification",
        **pick_camel(verified, "verified", "unusable", "left"),
        "needsAttention": verified.unusable > 0 or verified.unreadable > 0,
    }
    return Shown(verified, _verification_parts(verified), counts)


def _verification_parts(verified: Verified) -> list[Bundle]:
    facts = {
        "verified": verified.verified,
        "unusable": verified.unusable,
        "unreadable": verified.unreadable,
        "left for the next time": verified.left,
    }
    hint = _("Notebook 03 names the sales of unusable files.") if verified.unusable else ""
    problems = [(str(problem), number) for problem, number in verified.problems.items() if number]
    if verified.wrong_kind:
        problems.append(("WRONG_KIND", verified.wrong_kind))
    parts = [figures("Files", facts, hint)]
    return (
        [*parts, table("What is wrong with unusable files", ["problem", "files"], problems)] if problems else parts
    )
