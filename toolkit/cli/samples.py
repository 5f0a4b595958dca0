"""``toolkit sample`` and ``toolkit demo``: made-up data, and the whole job on them."""

import shlex
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from toolkit import embedded
from toolkit.bucket.client import access_settings
from toolkit.bucket.file_store import S3Store
from toolkit.cli.context import NonEmptyPath, pass_kit
from toolkit.cli.printing import note, show
from toolkit.errors import SettingsError
from toolkit.evidence.inspection import Inspector
from toolkit.kit.connection import Kit
from toolkit.notebooks.packaged import packaged_notebooks
from toolkit.notebooks.running import run_notebook
from toolkit.samples import story
from toolkit.samples.dataset import make_samples, write_samples

TIMEOUT: Final = 300.0
"""Seconds that each notebook may take."""


@dataclass(frozen=True)
class Demo:
    """One run of the main job, which says each result, line by line."""

    kit: Kit
    out: Path

    def run(self) -> None:
        """Do all of it.

        Raises:
            NotebookFailed: a notebook failed.
        """
        space, folder = self.kit, self.out / "sample-data"
        end = story.end_of_story(space.database, make_samples(), space.clock())
        samples = make_samples(end=end.astimezone(space.settings.timezone))
        write_samples(samples, folder)
        people, files = len(samples.csv_clients) + len(samples.xlsx_clients), len(samples.files)
        sales = len(samples.sales)
        show("Sample data: {} clients, {} sales and {} evidence files: {}", people, sales, files, folder)
        self._load_clients(folder)
        with Inspector() as inspector:
            zone, bucket = space.settings.timezone, space.bucket
            store = S3Store(bucket.name, "", access_settings(space.settings), "", embedded=bucket.embedded)
            telling = story.Telling(
                *(space.database, bucket, samples, folder, zone, space.log_keys, space.log_signer),
                *(inspector, store, space.audit_plan()),
            )
            telling.past()
            telling.load_sales(0, space.clock)
            given = ("manifest", folder / "manifest.csv"), ("files", folder / "files")
            asked, sent = self._notebook("02_request_credentials", *given)
            telling.act(0, space.clock)
        show(
            "Three months: {} audits, {} records withdrawn, {} sales completed",
            telling.audits,
            telling.withdrawn,
            telling.completed,
        )
        show(
            "Manifest: {} files: {} uploaded before, {} requested, {} requested again",
            *(asked[name] for name in ("rows", "skipped", "issued", "reissued")),
        )
        show("Evidence: {} uploaded by this manifest, {} of it not there yet", sent["sent"], sent["failed"])
        self._report()

    def _load_clients(self, folder: Path) -> None:
        files = [("files", folder / name) for name in ("clients.csv", "clients.xlsx")]
        [found] = self._notebook("01_bulk_load_clients", *files, ("out", self.out / "rejected"))
        show(
            "Clients: {} rows: {} registered, {} rejected, {} skipped; the rejected ones are in {}",
            *(found[name] for name in ("rows", "accepted", "rejected", "skipped")),
            self.out / "rejected",
        )

    def _report(self) -> None:
        _, found = self._notebook("03_missing_evidence_report", ("out", self.out))
        show(
            "Audit: {} sales: {} compliant, {} incomplete, {} in conflict",
            *(found[name] for name in ("sales", "compliant", "incomplete", "conflict")),
        )
        show("Report: {}", "  ".join(map(str, sorted(self.out.glob("missing-evidence.*")))))
        show("The notebooks as they ran: {}", self.out / "notebooks")

    def _notebook(self, name: str, *given: tuple[str, Path]) -> tuple[dict[str, Any], ...]:
        """Run one notebook and return its results."""
        run = run_notebook(
            packaged_notebooks()[name],
            [(parameter, str(path.absolute())) for parameter, path in given],
            self.out / "notebooks" / f"{name}.ipynb",
            timeout=TIMEOUT,
            environ=self.kit.environ,
        )
        return run.results


@click.command()
@click.option("--out", type=NonEmptyPath(file_okay=False), required=True, help="The folder to fill.")
def sample(out: Path) -> None:
    """Write a folder of made-up files: clients, sales, a manifest and the evidence files.

    \b
    Nobody in them is real. Some rows are wrong, as they are in life, and every case of the
    rules occurs. clientId in sales.csv is empty: the ids exist once the clients are registered.

    \b
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

    \b
    Clients are loaded, sales taken over, credentials requested, files uploaded, and the
    report written, by the notebooks of the project. A second time finds everything there; only
    credentials that ran out meanwhile are requested anew. Embedded services that did not run
    before are stopped at the end; their data stay.

    \b
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
    ours = all(service.pid is None for service in embedded.statuses(home))
    try:
        Demo(kit, out).run()
    finally:
        if ours:
            kit.close()
            embedded.stop(home)
    seconds = time.monotonic() - started
    toolkit = f"{shlex.quote(sys.executable)} -m toolkit"  # which a shell finds without an active environment, too
    note("Done in {:.0f} s. The data stay in {}; look at them with: {} audit", seconds, home, toolkit)
