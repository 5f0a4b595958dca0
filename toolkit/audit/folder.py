"""Open an audit folder: the tables of one audit as Parquet, and what it rests on in ``audit.json``.

Reports, notebooks and other programs read such a folder and nothing else, so that they tell the same whenever they
are asked.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final, Self
from zoneinfo import ZoneInfo

import pyarrow as pa
from pydantic import AwareDatetime, ConfigDict, TypeAdapter
from pydantic.alias_generators import to_camel

from toolkit.audit.duckdb_session import files_alone, quoted
from toolkit.bucket.file_store import FileStore, FolderStore
from toolkit.contract.codes import NOT_TOLD_TO_PARTNERS
from toolkit.contract.contents import COVERAGES, LOOK, SPEECH_READER, Depth
from toolkit.contract.evidence import FileKind
from toolkit.contract.findings import Problem, Status
from toolkit.contract.rules import EvidenceState, rules_fingerprint, toolkit_version
from toolkit.errors import InvalidInput, UnreadableFile
from toolkit.evidence.kinds import readers_of
from toolkit.log.bundle import SUMS, Witness, digest_of, proven
from toolkit.message import either

FACTS: Final = "audit.json"

INPUTS: Final = ("sales", "records", "objects")
"""The observations, without names, CPFs and names of files; kept for the newest audits only."""

TABLES: Final = (
    *INPUTS,
    *("files", "verdicts"),  # which an engine makes of the inputs
    *("missing", "findings", "trend", "file_findings", "reviews", "withdrawals", "waivers", "clients", "events"),
)
"""The tables of an audit folder, each a file of this name and ``.parquet``, or a folder of parts."""

CASES: Final = 20_000
"""Sales whose time lines are kept, the gravest and oldest ones: each takes 225 bytes of a report's page."""

UNPROVEN: Final = 1000
"""Compliant sales on files that are not fully verified, of which this is all that is wrong, that reports list."""

TO_TELL: Final = f"verdicts.status <> '{Status.COMPLIANT}' OR problems <> '' OR client_id IS NULL"
"""The condition of verdicts about which something is to be told."""

RANK: Final = f"""
    CASE WHEN status = '{Status.COMPLIANT}' THEN 2
         WHEN starts_with(problems, '{Problem.COMPLETED_WITHOUT_EVIDENCE}') THEN 0 ELSE 1 END
"""
"""The rank of a sale among those that reports list; of one rank the oldest comes first."""

_NOT_VERIFIED: Final = "first_bytes + never + unreadable > 0"  # verdicts on files that are not fully verified

UNPROVEN_SALES: Final = f"""
    SELECT sale_id FROM verdicts WHERE NOT ({TO_TELL}) AND {_NOT_VERIFIED} ORDER BY sale_id LIMIT {UNPROVEN}
"""

TOTALS: Final = f"""
    SELECT count(*) AS sales,
        {", ".join(f"count(*) FILTER (WHERE status = '{each}') AS {each}" for each in Status)},
        count(*) FILTER (WHERE client_id IS NULL) AS without_client,
        count(*) FILTER (WHERE status = '{Status.COMPLIANT}' AND NOT ({_NOT_VERIFIED})) AS compliant_verified,
        count(*) FILTER (WHERE status = '{Status.COMPLIANT}' AND completed_at IS NULL) AS compliant_not_completed,
        {", ".join(f"CAST(coalesce(sum({each}), 0) AS BIGINT) AS {each}" for each in COVERAGES.values())},
        CAST(coalesce(sum(unexamined), 0) AS BIGINT) AS unexamined
    FROM verdicts
"""
"""The numbers of an audit; this query and the one before are for every engine."""

_NAME: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}-[0-9]{2}-[0-9]{2}Z(-[0-9]+)?")

_OF_PARTNER: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("sales", "verdicts", "missing", "files", "findings", "trend", "reviews", "withdrawals"), "partner IN ({})"
    ),
    **dict.fromkeys(("records", "events"), "sale_id IN (SELECT sale_id FROM verdicts)"),
    "objects": "object IN (SELECT object FROM records)",
    "clients": "client_id IN (SELECT client_id FROM verdicts)",
    "waivers": "id IN (SELECT waiver_id FROM findings)",
    "file_findings": "list_has_any(finding_ids, (SELECT list(id) FROM findings))",
}
"""The condition that restricts each table to some partners."""

_PARTNER: Final = "getvariable('partner')"
"""The partner whose rows ``Audit.sql`` asks for."""

_OWN: Final = ", ".join(map(quoted, NOT_TOLD_TO_PARTNERS))

_FOR_PARTNERS: Final[Mapping[str, tuple[str, str]]] = {
    "findings": ("*", f"code NOT IN ({_OWN})"),
    "file_findings": ("*", "list_has_all((SELECT list(sale_id) FROM verdicts), sale_ids)"),
    "trend": ("*", "false"),
    "withdrawals": ("* REPLACE (NULL::VARCHAR AS withdrawn_by, NULL::VARCHAR AS approved_by)", "true"),
    "waivers": ("* REPLACE ('' AS owner, '' AS approved_by, NULL::VARCHAR AS revoked_by)", "true"),
}
"""The columns and the rows of its own that a partner is told, where these are not all of them.

What it is not told is compliance's own: suspicions about files, the trend, whose counts hold them, and people; and
findings about files that other partners' sales have, too.
"""

_FIRST: Final = ("verdicts", "records", "findings")
"""The tables by which others are restricted, in the order in which they ask each other."""

_AT_ONCE: Final = 4  # the partners whose rows are copied into memory at once, where each is asked alone


@dataclass(frozen=True, slots=True)
class LastSync:
    """The last reading of the bucket before the moment of an audit."""

    finished_at: AwareDatetime
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
    listed_since: AwareDatetime | None = None
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
    WITH counted AS (
        SELECT kind, depth, readers, look, sha256 IS NOT NULL AS verified, partner, sale_id
        FROM files WHERE state = '{EvidenceState.COUNTED}'
    ),
    own AS (
        SELECT * FROM counted WHERE partner IS NOT NULL  -- only others may be of no sale
        UNION ALL
        SELECT * FROM counted WHERE partner IS NULL AND sale_id IN (SELECT sale_id FROM verdicts)
    )
    SELECT kind, depth, readers, look, verified, count(*) AS files
    FROM own GROUP BY kind, depth, readers, look, verified
"""
"""The query of the number of counted files by what they were looked at with, for every engine."""


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


@dataclass(frozen=True, slots=True)
class PartFile:
    """One Parquet file of a table, by its name in the folder."""

    name: str
    sha256: str


@dataclass(frozen=True, slots=True)
class TablePart:
    """The files of one table, and the number of its rows."""

    rows: int
    files: tuple[PartFile, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFacts:
    """The contents of ``audit.json``: the moment of the audit, its totals, and what they rest on."""

    __pydantic_config__: ClassVar = ConfigDict(alias_generator=to_camel, populate_by_name=True)
    as_of: AwareDatetime
    made_at: AwareDatetime
    run: str | None = None
    """The id of the audit's row in ``audit.audit_runs``; an audit of the past has none."""
    changes_since: AwareDatetime | None = None
    """The moment of the audit before, with which findings were compared."""
    verified_first: bool | None = None
    """True where contents were verified before; ``None`` for an audit of the past."""
    timezone: str
    """The time zone of its days."""
    counts: Mapping[str, int]
    """``sales``, and how many of them are ``compliant``, ``incomplete`` and ``conflict``."""
    coverage: Mapping[str, int]
    """Counted files by how far they were looked at."""
    files: Looks = field(default_factory=Looks)
    """Counted files by the readers that looked at them, and how far."""
    source: Source
    service: Mapping[str, Any] | None = None
    """The reading of the service: the hash of the statements, the tables and columns behind them, and counts."""
    parts: Mapping[str, TablePart] = field(default_factory=dict)

    @property
    def of_now(self) -> bool:
        """True for an audit of now, which was noted; one of the past only reads."""
        return self.run is not None

    def written(self) -> bytes:
        """Return the contents of ``audit.json``."""
        return _FACTS.dump_json(self, by_alias=True, indent=2) + b"\n"


_FACTS: Final = TypeAdapter(AuditFacts)


@dataclass(frozen=True, eq=False)
class Audit:
    """One audit, or the rows of one partner in it."""

    store: FileStore
    name: str
    """The folder in the store."""
    facts: AuditFacts
    cache: Path | None = None
    """The folder for copies of parts in a bucket."""
    partner: str | None = None
    session: Any = field(default=None, repr=False)
    """DuckDB with the tables as views; without it they are made when they are first asked."""
    threads: int | None = None
    """The threads of its queries, each of which takes memory; one a processor where it is not set."""

    @property
    def folder(self) -> str:
        """The place of the folder: a path, or an address."""
        return f"{self.store.place.rstrip('/')}/{self.name}"

    def sql(self, query: str, *parameters: object, zone: str = "UTC") -> pa.Table:
        """Return the rows of a query of DuckDB, in which each table is a view; days are those of ``zone``."""
        session = (self.session or self._session).cursor()
        if zone != "UTC":
            session.execute(f"SET TimeZone = {quoted(zone)}")
        if self.partner is not None:
            session.execute(f"SET VARIABLE partner = {quoted(self.partner)}")
        if (rows := session.sql(query, params=list(parameters) or None)) is None:
            raise InvalidInput("The query is empty.")
        return rows.to_arrow_table()

    @property
    def partners(self) -> list[str]:
        """The names of the partners that its sales name, in their order."""
        found = self.sql("SELECT DISTINCT partner FROM verdicts WHERE partner IS NOT NULL ORDER BY 1")
        names: list[str] = found["partner"].to_pylist()
        return names

    def for_partner(self, name: str) -> Self:
        """Return the rows of this partner alone, as the partner may see them.

        Raises:
            InvalidInput: no sale names this partner.
        """
        partners = self.partners
        if name not in partners:
            folded = {each.casefold(): each for each in partners}
            wanted = name.casefold()
            holding = [each for each in folded if len(wanted) > 2 and wanted in each]
            near = [folded[each] for each in dict.fromkeys((*holding[:3], *get_close_matches(wanted, folded)))]
            if near:
                raise InvalidInput("No sale names the partner {!r}; did you mean {}?", name, either(near))
            raise InvalidInput("No sale names the partner {!r}.", name)
        return replace(self, partner=name, session=None)

    def each_partner(self, names: Sequence[str]) -> Iterator[Self]:
        """Yield the rows of each of these partners alone, as it may see them and without inputs.

        Each is to be asked before the next one is. The folder is read once for many of them, where ``for_partner``
        reads all of it for one.
        """
        for start in range(0, len(names), _AT_ONCE):
            some = names[start : start + _AT_ONCE]
            session, rows = _connected(1), {name: of for name, of in self._rows.items() if name not in INPUTS}
            _make_views(session, rows, ", ".join(map(quoted, some)), for_partners=False)
            session.execute("CREATE SCHEMA copied")
            for name in rows:
                session.execute(f"CREATE TABLE copied.{name} AS FROM {name}")
                rows[name] = f"copied.{name}"
            _make_views(session, rows, _PARTNER, for_partners=True)
            for name in some:
                yield replace(self, partner=name, session=session)
            session.close()

    def verify(self, *tables: str) -> Self:
        """Return the audit if its files, or those of these tables, are as written, except removed inputs.

        ``audit.json`` is compared with ``SHA256SUMS``, where that lies beside it.

        Raises:
            UnreadableFile: naming the first file that is missing or another one.
        """
        there, sums = set(self.store.names()), f"{self.name}/{SUMS}"
        listed = self.store.text(sums) if sums in there else ""
        facts = f"{self.store.sha256(f'{self.name}/{FACTS}')}  {FACTS}\n"
        wanted = {*tables} or {*TABLES} - {"reviews"}  # which older audits lack
        if (listed and facts not in listed) or not self.facts.parts.keys() >= wanted:
            raise UnreadableFile("{} of the audit {} is not what was written.", FACTS, self.folder)
        for table in tables or self.facts.parts:
            for file in self.facts.parts[table].files:
                name = f"{self.name}/{file.name}"
                if name not in there and table in INPUTS:
                    continue
                if name not in there or self.store.sha256(name) != file.sha256:
                    raise UnreadableFile("{} of the audit {} is not what was written.", file.name, self.folder)
        return self

    def lay_beside(self, witness: Witness) -> None:
        """Write ``SHA256SUMS`` into the folder, and what proves it, as the ``witness`` gives it."""
        facts = {FACTS: self.store.sha256(f"{self.name}/{FACTS}")}
        parts = {file.name: file.sha256 for part in self.facts.parts.values() for file in part.files}
        _, beside = proven(witness, parts | facts, facts)
        for name, content in beside.items():
            self.store.write(f"{self.name}/{name}", content)

    @cached_property
    def _session(self) -> Any:
        session = _connected(self.threads)
        _make_views(
            session, self._rows, None if self.partner is None else _PARTNER, for_partners=self.partner is not None
        )
        return session

    @property
    def _rows(self) -> dict[str, str]:
        found = {}
        for name in dict.fromkeys((*_FIRST, *self.facts.parts)):
            files = self.facts.parts[name].files if name in self.facts.parts else ()
            paths = [str(path) for file in files if (path := self._local(name, file)) is not None]
            if paths:
                found[name] = f"read_parquet({files_alone(paths)})"
        return found

    def _local(self, table: str, file: PartFile) -> Path | None:
        """Return the file on this machine, ``None`` for an input that retention removed."""
        try:
            return self.store.local(f"{self.name}/{file.name}", self.cache or Path(), file.sha256)
        except UnreadableFile:
            if table in INPUTS:
                return None
            raise


def _connected(threads: int | None) -> Any:
    import duckdb

    session = duckdb.connect(config={} if threads is None else {"threads": threads})
    session.execute("SET GLOBAL TimeZone = 'UTC'")
    return session


def _make_views(session: Any, rows: Mapping[str, str], partners: str | None, *, for_partners: bool) -> None:
    """Make a view of each table, of all rows or of those of some partners.

    ``partners`` are expressions of SQL: names, or ``_PARTNER``. Views ``for_partners`` lack what they may not see.
    """
    for name, of in rows.items():
        only = "true" if partners is None else _OF_PARTNER[name].format(partners)
        columns, shown = _FOR_PARTNERS.get(name, ("*", "true")) if for_partners else ("*", "true")
        session.execute(f"CREATE OR REPLACE VIEW {name} AS SELECT {columns} FROM {of} WHERE {only} AND {shown}")


def open_audit(place: str | Path, store: FileStore | None = None, cache: Path | None = None) -> Audit:
    """Open the audit in a folder, or the one of that name in a store.

    Raises:
        UnreadableFile: there is none, or ``audit.json`` is not one.
    """
    if store is None:
        path = Path(place).expanduser().absolute()
        store, name = FolderStore(path.parent, str(path.parent)), path.name
    else:
        name = str(place)
    try:
        facts = _FACTS.validate_json(store.text(f"{name}/{FACTS}"))
        ZoneInfo(facts.timezone)
    except (ValueError, KeyError):
        raise UnreadableFile("{} in {} was not written by toolkit audit.", FACTS, name) from None
    return Audit(store, name, facts, cache)


def list_audits(store: FileStore) -> list[str]:
    """Return the names of the audits in a store, the oldest moment first; unfinished ones are not among them."""
    names = (name.split("/") for name in store.names() if name.endswith(f"/{FACTS}"))
    found = [folder for folder, *rest in names if len(rest) == 1 and _NAME.fullmatch(folder)]
    return sorted(found, key=lambda name: (name[:20], int(name[21:] or 1)))


def name_of(moment: datetime, taken: Sequence[str]) -> str:
    """Return the name of the folder of a moment; one more of the same second is numbered."""
    name = f"{moment.astimezone(UTC):%Y-%m-%dT%H-%M-%SZ}"
    number = 1
    while (found := name if number == 1 else f"{name}-{number}") in taken:
        number += 1
    return found


def part_of(folder: Path, table: str) -> TablePart:
    """Return the files of a table that was written to a local folder."""
    import pyarrow.parquet as pq

    place = folder / f"{table}.parquet"
    files = [place] if place.is_file() else sorted(place.glob("*.parquet"))
    rows = sum(pq.read_metadata(file).num_rows for file in files)
    parts = (PartFile(file.relative_to(folder).as_posix(), digest_of(file)) for file in files)
    return TablePart(rows, tuple(parts))
