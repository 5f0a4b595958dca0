"""The source of an audit's numbers: the database, the bucket, the rules and the version of the toolkit."""

from dataclasses import dataclass, field
from datetime import datetime

import sqlalchemy as sa

from toolkit.domain.versions import rules_fingerprint, toolkit_version
from toolkit.storage import tables
from toolkit.storage.reader import Reader


@dataclass(frozen=True, slots=True)
class LastSync:
    """The last reading of the bucket before the moment of an audit."""

    finished_at: datetime
    bucket: str
    taken_from: str | None = None
    """The inventory or journal that was taken over instead of reading it."""
    denied: int = 0
    """The number of keys about which the bucket refused to answer: what was known of them stands."""


@dataclass(frozen=True, slots=True)
class Source:
    """The source of an audit."""

    database: str
    """The address, without user and password."""
    embedded: tuple[str, ...]
    """The services that were embedded ones, for trying out and testing: ``database``, ``bucket``, both or none."""
    last_sync: LastSync | None
    """``None`` where the bucket had never been read."""
    seal: str | None
    """The hash of the newest seal of the custody log then; kept here, it later proves an exported log."""
    toolkit: str = field(default_factory=toolkit_version)
    rules: str = field(default_factory=rules_fingerprint)
    """A fingerprint that changes when the minimum-evidence rules do."""
    picture_since: datetime | None = None
    """The last look at that part of the bucket which had waited longest; objects of open sales never wait."""
    records_assumed_at: datetime | None = None
    """Until when evidence records were not observed: what is said of earlier moments is what they were then."""
    records_of_unknown_partners: int = 0
    """Records of which nobody noted for which partner they were requested; counted with findings about files."""
    hidden_rows: tuple[str, ...] = ()
    """Tables of the service whose policies may hide rows from the role that reads them."""
    copied_rows: tuple[str, ...] = ()
    """Materialised views of the service: they hold what there was when they were refreshed last."""
    replica: str | None = None
    """The replica that judged, and how far it was behind."""
    snapshot: str | None = None
    """The snapshot that was judged instead of the database, with its moment."""
    other_deadlines: bool = False
    """True where deadlines, holidays or the time zone were others on the machine that exported the snapshot."""
    people_asked: bool = True
    """False where the database of a snapshot could not be asked for CPFs, names, reasons and keys of objects."""


def last_sync(connection: Reader, moment: datetime, *, exported: bool = False) -> LastSync | None:
    """Return the last reading of the bucket by then; a snapshot, where it was ``exported``, has no ``denied``."""
    syncs = tables.bucket_syncs
    denied = sa.literal(0) if exported else sa.func.coalesce(syncs.c.denied, 0)
    row = connection.execute(
        sa.select(syncs.c.finished_at, syncs.c.bucket, syncs.c.source, denied)
        .where(syncs.c.finished_at <= moment)
        .order_by(syncs.c.finished_at.desc(), syncs.c.id.desc())
        .limit(1)
    ).one_or_none()
    return None if row is None else LastSync(*row)
