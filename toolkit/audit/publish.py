"""Give finished audits their final names, those that a process left behind too, and remove old ones.

In a folder an audit gets its name by a rename. In a bucket its files are uploaded under a name that was taken for
it, ``audit.json`` last: without that a folder is no audit.
"""

from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from uuid import UUID

import sqlalchemy as sa

from toolkit.atomic_files import abandoned, sync
from toolkit.audit.folder import FACTS, INPUTS, Audit, list_audits, name_of, open_audit
from toolkit.bucket.file_store import FileStore, FolderStore
from toolkit.contract.deadlines import Deadlines
from toolkit.database.belonging import identity_of
from toolkit.database.connection import Database
from toolkit.database.tables import audit_runs
from toolkit.errors import UnreadableFile
from toolkit.settings import Settings


@dataclass(frozen=True)
class AuditPlan:
    """The store of audits and the settings of those that are made."""

    store: FileStore
    """The folder or bucket that the audits are in."""
    settings: Settings
    deadlines: Deadlines
    spark_url: str | None = None
    """The Spark server that judges, ``None`` for DuckDB in this process."""

    @property
    def work(self) -> Path:
        """The folder of this machine for drafts and copies, where the store is a bucket."""
        return self.settings.home / "audit-work"

    @property
    def copies(self) -> Path:
        """The folder for copies of what is in a bucket."""
        return self.work / "copies"


def drafts_of(database: Database, store: FileStore, work: Path) -> Path:
    """Return the folder for the drafts of this database, as several may have one store."""
    this = sha256(str(database.run(identity_of)).encode()).hexdigest()[:16]
    return Path(store.place if isinstance(store, FolderStore) else work) / f".drafts-{this}"


def publish(store: FileStore, folder: Path, cache: Path) -> Audit:
    """Give the draft ``folder`` its final name; one of the past that is there already is left out."""
    facts = open_audit(folder).facts
    if isinstance(store, FolderStore):
        for file in (*folder.rglob("*"), folder):
            sync(file)
        alike = () if facts.of_now else (each for each in list_audits(store) if each[:20] == folder.name[:20])
        for known in (open_audit(each, store) for each in alike):
            if replace(known.facts, made_at=facts.made_at) == facts:
                with suppress(UnreadableFile):  # that of one that was changed since says something else
                    known.verify()
                    return known
    folder = named(store, folder, facts.as_of, facts.run or facts.made_at.isoformat())
    if isinstance(store, FolderStore):
        sync(Path(store.place))
    else:
        files = (path for path in folder.rglob("*") if path.is_file())
        for file in sorted(files, key=lambda path: (path.name == FACTS, path)):
            store.put(f"{folder.name}/{file.relative_to(folder).as_posix()}", file)
    return open_audit(folder.name, store, cache)


def named(store: FileStore, folder: Path, moment: datetime, owner: str) -> Path:
    """Return the draft under a name that no other audit has in the store; its ``owner`` has it again."""
    taken = list[str]()
    while not store.take(folder, owner):
        taken.append(folder.name)
        folder = folder.rename(folder.with_name(name_of(moment, [*taken, *list_audits(store)])))
    return folder


def finish_left(database: Database, store: FileStore, drafts: Path, cache: Path) -> None:
    """Publish audits of now that were noted, and whose process died, or could not reach the store, before."""
    with closing(abandoned(drafts)) as left:
        for facts in (each for draft in left for each in draft.glob(f"*/{FACTS}")):
            with suppress(UnreadableFile):  # of a process that died while it wrote
                run = open_audit(facts.parent).facts.run
                own = sa.select(audit_runs.c.id).where(audit_runs.c.id == (run and UUID(run)))
                noted = database.run(sa.Connection.scalar, own)
                # Whatever number its name has got among those of the same second.
                alike = (each for each in list_audits(store) if each[:20] == facts.parent.name[:20])
                if noted and all(open_audit(each, store).facts.run != run for each in alike):
                    publish(store, facts.parent, cache)


def prune(store: FileStore, keep_inputs: int, since: datetime) -> None:
    """Remove the inputs of all but the newest audits, and whole audits that were made before ``since``."""
    audits = list_audits(store)
    files = store.names()
    for place, name in enumerate(reversed(audits)):
        old = name[:20] < f"{since:%Y-%m-%dT%H-%M-%SZ}" and open_audit(name, store).facts.made_at < since
        own = [file for file in files if file.startswith(f"{name}/")]
        # First what makes it an audit, so that a half removed one is none.
        for file in sorted(own, key=lambda file: not file.endswith(FACTS)):
            if old or (place >= keep_inputs and file.split("/")[1].removesuffix(".parquet") in INPUTS):
                store.remove(file)
