"""Load one file: judge it chunk by chunk, count, register, and write its rejected rows."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Final

import numpy as np

from toolkit.errors import InvalidField
from toolkit.operations.progress import Progress
from toolkit.operations.register.bulk_load.batches import Batch, Turn
from toolkit.operations.register.bulk_load.duplicates import SeenKeys
from toolkit.operations.register.bulk_load.options import WARNED_FIELD, LoadOptions, OnDuplicate
from toolkit.operations.register.bulk_load.plans import Plan
from toolkit.operations.register.bulk_load.registering import Accepted, ChunkRegistration, lookup
from toolkit.operations.register.bulk_load.rejects import Outputs
from toolkit.operations.register.bulk_load.repairs import with_days_from_1900
from toolkit.operations.register.bulk_load.results import Example, FileLoaded, Tally, masked
from toolkit.operations.register.bulk_load.threads import prefetch
from toolkit.operations.register.bulk_load.verdicts import ROW, ChunkVerdict, Misfits, decide
from toolkit.operations.register.limits import misfits
from toolkit.operations.spreadsheets import Chunk
from toolkit.operations.spreadsheets.text_bytes import Mask
from toolkit.storage.database import Database, raw
from toolkit.storage.service_map.keys import next_client_ids

_THERE: Final = "Registered already"


class Load:
    """The load of one file at one moment; use it once.

    It is a dry run where it is given ``counted``, the keys of the clients of the dry runs before it. While a load
    that is ``alone`` runs, no other one ends.
    """

    def __init__(
        self,
        plan: Plan,
        options: LoadOptions,
        moment: datetime,
        progress: Progress,
        counted: SeenKeys | None,
        *,
        alone: bool = False,
    ) -> None:
        layout = plan.understood.layout
        self._plan, self._options, self._moment, self._progress = plan, options, moment, progress
        self._batch = Batch(plan.table.source.name, layout.sha256, options)
        self._tally = Tally()
        self._outputs = Outputs(
            plan.folder, plan.table.source.flat_name, layout.delimiter, plan.headings, options.language
        )
        self._on_duplicate = options.on_duplicate
        self._counted = counted
        self._turn = Turn(alone)

    def run(self, database: Database) -> FileLoaded:
        """Load the file, or in a dry run find out what that would do; all of it or nothing.

        Raises:
            UnreadableFile: the file changed or broke while it was read.
            DatabaseError: the database failed.
            InvalidInput: the files that come back cannot be written.
            Overlap: a load that ran beside it registered a client of it; nothing was written.
        """
        with self._outputs as outputs:
            already = self._load(database)
            rejected, skipped = outputs.publish()
        return FileLoaded(self._plan.understood, self._tally, already, rejected, skipped, tuple(outputs.notes))

    def _load(self, database: Database) -> datetime | None:
        """Load the file unless it was loaded already, and tell when that was."""
        is_dry_run = self._counted is not None
        with database.transaction() as connection:
            if not is_dry_run:
                self._turn.begin(connection, self._progress)
            already = self._batch.loaded_at(connection)
            writes = not is_dry_run and already is None
            if already is not None:
                self._on_duplicate = OnDuplicate.SKIP
            with lookup(database, self._turn) as reading:
                registration = ChunkRegistration(
                    raw(connection) if writes else None,
                    reading,
                    self._on_duplicate,
                    self._moment,
                    ids=partial(next_client_ids, database),
                    seen=self._counted,
                )
                self._pass(registration, partial(misfits, database))
            if already is not None:
                self._tally.all_there()
            self._outputs.complete(self._tally)
            if writes:
                self._plan.table.source.check_unchanged(self._plan.table.stamp)
                self._turn.end(connection, self._batch, registration.hashes)
                self._batch.record(connection, self._tally, self._moment)
        return already

    def _pass(self, registration: ChunkRegistration, misfits: Misfits) -> None:
        layout = self._plan.understood.layout
        self._progress.begin(f"Loading {self._batch.source}", layout.size, layout.unit)
        with registration.running, prefetch(self._plan.chunks()) as chunks:
            for chunk in chunks:
                verdict = decide(chunk, self._plan.columns, self._options, self._moment.date(), misfits)
                self._note(chunk, verdict)
                for registered in registration.add(chunk, verdict):
                    self._settle(registered)
                self._progress.advance(chunk.size)
            for registered in registration.finish():
                self._settle(registered)
        self._progress.end()

    def _note(self, chunk: Chunk, verdict: ChunkVerdict) -> None:
        """Count the results of a chunk, and write its rejected rows."""
        tally = self._tally
        tally.repairs.update(verdict.repairs)
        for warning, mask in verdict.warnings.items():
            tally.warnings[warning] += int(mask.sum())
            for row in np.flatnonzero(mask)[:3].tolist():
                self._add_example(warning, WARNED_FIELD.get(warning, ROW), chunk, row)
        rows = sorted(verdict.errors)
        for row in rows:
            for error in verdict.errors[row]:
                reason = f"{error.field}: {error.message}"
                tally.reasons[reason] += 1
                self._add_example(reason, error.field, chunk, row)
        if rows:
            reasons = [_joined(verdict.errors[row]) for row in rows]
            self._reject(chunk.take(np.array(rows)), reasons, self._wrong(rows, verdict))

    def _wrong(self, rows: Sequence[int], verdict: ChunkVerdict) -> dict[int, Mask]:
        """Return the wrong cells of rejected rows, by the position of their column."""
        wrong: dict[int, Mask] = {}
        for place, row in enumerate(rows):
            for error in verdict.errors[row]:
                position = self._plan.columns.get(error.field)
                if position is not None:
                    wrong.setdefault(position, np.zeros(len(rows), dtype=bool))[place] = True
        return wrong

    def _add_example(self, of: str, field: str, chunk: Chunk, row: int) -> None:
        if self._tally.wants_example(of):
            position = self._plan.columns.get(field)
            value = "" if position is None else masked(field, chunk.columns[position][row].as_py())
            self._tally.add_example(of, Example(self._batch.source, int(chunk.lines[row]), value))

    def _settle(self, registered: Accepted) -> None:
        self._tally.accepted += registered.new
        chunk, client_ids, refusal = registered.chunk, registered.client_ids, registered.refusal
        if chunk is None:
            return
        if refusal:
            self._reject_alike(chunk, f"{ROW}: {refusal}", [f"{ROW}: {refusal}"])
            return
        if self._on_duplicate is OnDuplicate.SKIP:
            self._tally.skipped += len(chunk)
            self._outputs.skip(chunk.lines.tolist(), client_ids)
            return
        reason = f"{ROW}: {_THERE}"
        self._reject_alike(chunk, reason, [f"{reason}, clientId {key}" if key else reason for key in client_ids])

    def _reject_alike(self, chunk: Chunk, reason: str, told: Sequence[str]) -> None:
        """Reject rows that one reason counts, each with what its own line tells."""
        self._tally.reasons[reason] += len(chunk)
        for row in range(min(len(chunk), 3)):
            self._add_example(reason, ROW, chunk, row)
        self._reject(chunk, told, {})

    def _reject(self, chunk: Chunk, reasons: Sequence[str], wrong: Mapping[int, Mask]) -> None:
        self._tally.rejected += len(chunk)
        birthdates = self._plan.columns["birthdate"]
        self._outputs.reject(with_days_from_1900(chunk, birthdates), reasons, wrong)


def _joined(errors: Iterable[InvalidField]) -> str:
    return "; ".join(f"{error.field}: {error.message}" for error in errors)
