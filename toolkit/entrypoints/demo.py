"""Run the main job on made-up data, end to end, as ``make run`` does.

The jobs that people have notebooks for run as those notebooks, each in a kernel of its own; what others do
around them (the sales system, partners, compliance) happens in between. A second run finds everything there.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from toolkit.entrypoints.application_context import ApplicationContext
from toolkit.entrypoints.notebook_runs import run_notebook
from toolkit.entrypoints.packaged_notebooks import packaged_notebooks
from toolkit.operations.verify.contents.inspector import Inspector
from toolkit.samples import story
from toolkit.samples.dataset import Samples, make_samples
from toolkit.samples.folder import write_samples
from toolkit.storage.bucket import access_settings
from toolkit.storage.file_store import S3Store

TIMEOUT: Final = 300.0
"""Seconds that each notebook may take."""


@dataclass(frozen=True)
class Demo:
    """One run of the main job; ``say`` is told each result, line by line."""

    application: ApplicationContext
    environ: Mapping[str, str]
    out: Path
    say: Callable[[str], None]

    def run(self) -> None:
        """Do all of it.

        Raises:
            NotebookFailed: a notebook failed.
        """
        space, folder = self.application, self.out / "sample-data"
        end = story.end_of_story(space.database, make_samples(), space.clock())
        samples = make_samples(end=end.astimezone(space.settings.timezone))
        self._write(samples, folder)
        self._load_clients(folder)
        with Inspector() as inspector:
            zone, bucket = space.settings.timezone, space.bucket
            store = S3Store(bucket.name, "", access_settings(space.settings), "", embedded=bucket.embedded)
            telling = story.Telling(
                space.database, bucket, samples, folder, zone, space.log_keys, inspector, store
            )
            telling.past()
            telling.load_sales(0, space.clock)
            self._upload(folder)
            telling.act(0, space.clock)
        self.say(
            f"Three months: {telling.audits} audits, {telling.sent} files sent by partners, "
            f"{telling.withdrawn} records withdrawn, {telling.completed} sales completed"
        )
        self._report()

    def _write(self, samples: Samples, folder: Path) -> None:
        write_samples(samples, folder)
        people = len(samples.csv_clients) + len(samples.xlsx_clients)
        files = sum(len(sale.files) for sale in samples.sales)
        self.say(f"Sample data: {people} clients, {len(samples.sales)} sales and {files} evidence files: {folder}")

    def _load_clients(self, folder: Path) -> None:
        files = [("files", folder / name) for name in ("clients.csv", "clients.xlsx")]
        found = self._notebook("01_bulk_load_clients", *files, ("out", self.out / "rejected"))
        self.say(
            f"Clients: {found['rows']} rows: {found['accepted']} registered, {found['rejected']} rejected, "
            f"{found['skipped']} skipped; the rejected ones are in {self.out / 'rejected'}"
        )

    def _upload(self, folder: Path) -> None:
        found = self._notebook("02_request_credentials", ("manifest", folder / "manifest.csv"))
        self.say(
            f"Evidence: {found['rows']} files: {found['issued']} requested, {found['reissued']} requested again, "
            f"{found['uploaded']} uploaded, {found['skipped']} uploaded before, {found['failed']} not there yet"
        )

    def _report(self) -> None:
        found = self._notebook("03_missing_evidence_report", ("out", self.out))
        self.say(
            f"Audit: {found['sales']} sales: {found['compliant']} compliant, {found['incomplete']} incomplete, "
            f"{found['conflict']} in conflict"
        )
        self.say("Report: " + "  ".join(str(self.out / Path(path).name) for path in found["written"]))
        self.say(f"The notebooks as they ran: {self.out / 'notebooks'}")

    def _notebook(self, name: str, *given: tuple[str, Path]) -> dict[str, Any]:
        """Run one notebook and return its results."""
        run = run_notebook(
            packaged_notebooks()[name],
            [(parameter, str(path.absolute())) for parameter, path in given],
            self.out / "notebooks" / f"{name}.ipynb",
            timeout=TIMEOUT,
            environ=self.environ,
        )
        return run.results[0]
