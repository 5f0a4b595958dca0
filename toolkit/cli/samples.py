"""``toolkit sample`` and ``toolkit demo``: made-up data, and the whole job on them."""

import shlex
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import click

from toolkit import embedded
from toolkit.bucket.client import access_settings
from toolkit.bucket.file_store import S3Store
from toolkit.cli.context import NonEmptyPath, note, pass_kit, show
from toolkit.errors import SettingsError
from toolkit.evidence.inspection import Inspector
from toolkit.kit.connection import Kit
from toolkit.notebooks.packaged import packaged_notebooks
from toolkit.notebooks.running import run_notebook
from toolkit.samples import story
from toolkit.samples.dataset import make_samples, write_samples

TIMEOUT: Final = 300.0  # seconds that each notebook may take


def do_the_main_job(kit: Kit, out: Path) -> None:
    """Do all of it, and say each result, line by line.

    Raises:
        NotebookFailed: a notebook failed.
    """

    def notebook(name: str, *given: tuple[str, Path]) -> tuple[dict[str, Any], ...]:
        path, done = packaged_notebooks()[name], out / "notebooks" / f"{name}.ipynb"
        parameters = [(parameter, str(value.absolute())) for parameter, value in given]
        return run_notebook(path, parameters, done, timeout=TIMEOUT, environ=kit.environ).results

    folder = out / "sample-data"
    with ThreadPoolExecutor() as threads:  # the embedded ones start side by side
        opened = threads.submit(lambda: kit.bucket)
        end = story.end_of_story(kit.database, make_samples(), kit.clock())
        bucket = opened.result()
    samples = make_samples(end=end.astimezone(kit.settings.timezone))
    write_samples(samples, folder)
    files, counts = len(samples.files), map(len, (samples.clients, samples.sales, samples.files))
    show("Sample data: {} clients, {} sales and {} evidence files: {}", *counts, folder)
    sources = [("files", folder / name) for name in ("clients.csv", "clients.xlsx")]
    [found] = notebook("01_bulk_load_clients", *sources, ("out", out / "rejected"))
    show(
        "Clients: {} rows: {} registered, {} rejected, {} skipped; the rejected ones are in {}",
        *(found[name] for name in ("rows", "accepted", "rejected", "skipped")),
        out / "rejected",
    )
    with Inspector() as one, Inspector() as other:
        store = S3Store(bucket.name, "", access_settings(kit.settings), "")
        telling = story.Telling(kit, kit.database, samples, folder, (one, other), store)
        telling.past()
        telling.load_sales(0)
        given = ("manifest", folder / "manifest.csv"), ("files", folder / "files")
        asked, sent = notebook("02_request_credentials", *given)
        telling.act(0)
    done = telling.audits, telling.withdrawn, telling.completed
    show("Three months: {} audits, {} records withdrawn, {} sales completed", *done)
    show(
        "Manifest: {} of the {} files, others send the rest: {} uploaded before, {} requested, {} requested again",
        *(asked["rows"], files, *(asked[name] for name in ("skipped", "issued", "reissued"))),
    )
    show("Evidence: {} uploaded by this manifest, {} of it not there yet", sent["sent"], sent["failed"])
    _, audited = notebook("03_missing_evidence_report", ("out", out))
    show(
        "Audit: {} sales: {} compliant, {} incomplete, {} in conflict",
        *(audited[name] for name in ("sales", "compliant", "incomplete", "conflict")),
    )
    show("Report: {}", "  ".join(map(str, sorted(out.glob("missing-evidence.*")))))
    show("The notebooks as they ran: {}", out / "notebooks")


@click.command()
@click.option("--out", type=NonEmptyPath(file_okay=False), required=True, help="The folder to fill.")
def sample(out: Path) -> None:
    """Write a folder of made-up files: clients, sales, a manifest and the evidence files.

    Nobody in them is real. Some rows are wrong, as they are in life, and every case of the
    rules occurs. clientId in sales.csv is empty: the ids exist once the clients are registered.

    Example:
      toolkit sample --out sample-data
      toolkit clients load sample-data/clients.csv sample-data/clients.xlsx --out rejected
      toolkit sales load sample-data/sales.csv
    """
    write_samples(make_samples(), out)
    show(str(out))


@click.command()
@click.option(
    "--out",
    type=NonEmptyPath(file_okay=False),
    default=Path("reports"),
    show_default=True,
    help="The folder for the report, the sample data and the executed notebooks.",
)
@click.option(
    "--shared", is_flag=True, help="Run also where DATABASE_URL or EVIDENCE_BUCKET names a shared service."
)
@pass_kit
def demo(kit: Kit, out: Path, shared: bool) -> None:
    """Do the whole job on made-up data, end to end, and say at each step what happened.

    Clients are loaded, sales taken over, credentials requested, files uploaded, and the
    report written, by the notebooks of the project. A second time finds everything there; only
    credentials that ran out meanwhile are requested anew. Embedded services that did not run
    before are stopped at the end; their data stay.

    Example:
      toolkit demo --out reports
    """
    started = time.monotonic()
    if not shared and (kit.settings.database_url or kit.settings.evidence_bucket):
        raise SettingsError(
            "The demo fills database and bucket with made-up sales, and DATABASE_URL or EVIDENCE_BUCKET names a "
            "shared one. Unset both to use the embedded services, or add --shared if it is meant for this."
        )
    home = kit.settings.home
    ours = not any(embedded.running(home))
    try:
        do_the_main_job(kit, out)
    finally:
        if ours:
            kit.close()
            embedded.stop(home)
    seconds = time.monotonic() - started
    toolkit = f"{shlex.quote(sys.executable)} -m toolkit"  # which a shell finds without an active environment, too
    note("Done in {:.0f} s. The data stay in {}; look at them with: {} audit", seconds, home, toolkit)
