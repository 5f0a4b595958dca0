"""The source of an audit's numbers: the database, the bucket, the rules and the version of the toolkit."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Final, Self

import sqlalchemy as sa
from pydantic import ConfigDict
from pydantic.alias_generators import to_camel
from sqlalchemy import Connection

from toolkit.contract.contents import LOOK, SPEECH_READER, Depth
from toolkit.contract.evidence import FileKind
from toolkit.contract.rules import EvidenceState, rules_fingerprint, toolkit_version
from toolkit.database import tables
from toolkit.evidence.kinds import readers_of


@dataclass(frozen=True, slots=True)
class LastSync:
    """The last reading of the bucket before the moment of an audit."""

    finished_at: datetime
    bucket: str
    taken_from: str | None = None
    """The inventory that was taken over instead of reading it."""
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
    listed_since: datetime | None = None
    """The last look at that part of the bucket which had waited longest; objects of open sales never wait."""
    hidden_rows: tuple[str, ...] = ()
    """Tables of the service whose policies may hide rows from the role that reads them."""
    copied_rows: tuple[str, ...] = ()
    """Materialised views and foreign tables of the service: nobody sees here what was changed behind them."""
    service_changes: tuple[str, ...] = ()
    """Differences from the reading of the service before, and a restore that nobody confirmed."""
    service_notes: tuple[str, ...] = ()
    """Rows of the service that cannot be used as they are."""
    rows_left_out: tuple[str, ...] = ()
    """The rows of the service's tables that its statements do not yield, as they are meant to or not."""
    replica: str | None = None
    """The replica that the audit was extracted from, and how far it was behind."""


LOOKS: Final = f"""
    WITH counted AS (FROM files WHERE state = '{EvidenceState.COUNTED}')
    SELECT kind, depth, readers, look, sha256 IS NOT NULL AS verified, count(*) AS files
    FROM (
        FROM counted WHERE partner IS NOT NULL  -- only others may be of no sale
        UNION ALL
        FROM counted WHERE partner IS NULL AND sale_id IN (SELECT sale_id FROM verdicts)
    )
    GROUP BY ALL
"""
"""The query of the number of counted files by what they were looked at with."""


@dataclass(frozen=True, slots=True)
class Looks:
    """The counted files by what they were looked at with."""

    __pydantic_config__: ClassVar = ConfigDict(alias_generator=to_camel, populate_by_name=True)
    readers: Mapping[str, int] = field(default_factory=dict)
    """Files by the package that read them, and its version."""
    depth: Mapping[str, int] = field(default_factory=dict)
    """Files by ``Depth``; those of which it is not known are not in it."""
    older_look: int = 0
    """Files that were verified in an older way than this version's, or without one of the readers installed."""
    without_speech: int = 0
    """Recordings that were decoded where nothing was installed that recognises speech."""

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]]) -> Self:
        """Return the sums of rows of ``LOOKS``."""
        readers, depth, older, unheard = Counter[str](), Counter[str](), 0, 0
        for row in rows:
            files, named = int(row["files"]), row["readers"].split("|") if row["readers"] else []
            readers.update(dict.fromkeys(named, files))
            depth.update({row["depth"]: files} if row["depth"] else {})
            lacking = bool(named) and not set(readers_of(row["kind"])) <= set(named)
            older += files * (row["verified"] and ((row["look"] or 1) < LOOK or lacking))
            decoded = row["kind"] == FileKind.AUDIO and row["depth"] in {Depth.DECODED, Depth.PART}
            unheard += files * (decoded and not any(each.startswith(SPEECH_READER) for each in named))
        return cls(dict(sorted(readers.items())), dict(sorted(depth.items())), older, unheard)


def last_sync(connection: Connection, moment: datetime) -> LastSync | None:
    """Return the last reading of the bucket by then."""
    syncs = tables.bucket_syncs
    denied = sa.func.coalesce(syncs.c.denied, 0)
    row = connection.execute(
        sa.select(syncs.c.finished_at, syncs.c.bucket, syncs.c.source, denied)
        .where(syncs.c.finished_at <= moment)
        .order_by(syncs.c.finished_at.desc(), syncs.c.id.desc())
        .limit(1)
    ).one_or_none()
    return None if row is None else LastSync(*row)
