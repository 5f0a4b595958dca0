"""Register many clients from spreadsheets: check columns, COPY, return rejected rows as files.

One file after the other passes through once, in chunks: it is read (``spreadsheets``), judged (``verdicts``),
and what is accepted is copied in the background (``registering``, ``copying``) while the next chunk is judged.
A file is loaded in one transaction, together with the note that it was (``batches``): all of it or nothing,
and never twice. Loads of several processes run side by side, and each client is registered by one of them.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from toolkit.errors import UnreadableFile
from toolkit.operations import Clock
from toolkit.operations.progress import Progress, Quiet
from toolkit.operations.register.bulk_load.batches import Overlap
from toolkit.operations.register.bulk_load.duplicates import SeenKeys
from toolkit.operations.register.bulk_load.headings import Headings
from toolkit.operations.register.bulk_load.loads import Load
from toolkit.operations.register.bulk_load.options import WARNINGS, LoadOptions, OnDuplicate, Repair
from toolkit.operations.register.bulk_load.plans import Plan
from toolkit.operations.register.bulk_load.results import Example, FileLoaded, LoadResult, Understood
from toolkit.operations.register.limits import read_limits
from toolkit.operations.spreadsheets import Reading, find_sources, open_table
from toolkit.storage.database import Database
from toolkit.storage.service_map.writing import require_writable

__all__ = [
    "WARNINGS",
    "Example",
    "FileLoaded",
    "LoadOptions",
    "LoadResult",
    "OnDuplicate",
    "Repair",
    "Understood",
    "load_clients",
]


def load_clients(
    database: Database,
    files: Sequence[Path],
    *,
    out: Path | None = None,
    dry_run: bool = False,
    options: LoadOptions | None = None,
    clock: Clock,
    progress: Progress | None = None,
    announce: Callable[[Understood], None] = lambda _: None,
) -> LoadResult:
    """Register the clients in ``files`` (folders and archives stand for what is in them).

    Rejected and skipped rows come back as files under ``out``, by default beside their source. A ``dry_run``
    writes these, too, but nothing into the database. ``announce`` is told what was understood of each file
    before anything is loaded.

    Raises:
        UnreadableFile: no file can be read or has the headings; where some can, the result names the others.
        InvalidInput: what comes back cannot be written; files before the one at work are in, that one is not.
        WriteRefused: the service's clients cannot be written as they are mapped; nothing was read.
        DatabaseError: the database failed; likewise.
    """
    if not dry_run:
        require_writable(database, "clients.insert", "addresses.insert")
    read_limits(database)
    options = options or LoadOptions()
    headings = Headings(options.headings)
    reading = Reading(options.encoding, options.delimiter, options.sheet, headings.recognise)
    plans: list[Plan] = []
    unreadable: list[UnreadableFile] = []
    sources = find_sources(files, unreadable.append)
    for source in sources:
        try:
            table = open_table(source, reading)
            plans.append(Plan(table, headings, out or source.path.parent))
        except UnreadableFile as error:
            unreadable.append(error)
            continue
        if len(sources) > 1:
            table.release()
    if unreadable and not plans:
        raise unreadable[0]
    for plan in plans:
        announce(plan.understood)
    counted = SeenKeys() if dry_run else None

    def loaded(plan: Plan, *, alone: bool = False) -> FileLoaded:
        try:
            return Load(plan, options, clock(), progress or Quiet(), counted, alone=alone).run(database)
        except Overlap:
            return loaded(plan, alone=True)

    return LoadResult(dry_run=dry_run, files=tuple(map(loaded, plans)), unreadable=tuple(map(str, unreadable)))
