"""Erase what is known of a person: objects in every version, rows, names in histories, and files beside them.

The custody log is not rewritten: what its entries hold of the person are hashes, whose keys go. A ledger outside
of the database lists each erasure before anything is destroyed, and is replayed after a restore.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Final
from uuid import UUID
from zoneinfo import ZoneInfo

import sqlalchemy as sa
from pydantic import Field, TypeAdapter, ValidationError
from sqlalchemy import Connection

from toolkit.atomic_files import sync
from toolkit.bucket.client import Bucket, ask_each
from toolkit.contract.events import ERASED, HIDDEN, CustodyEvent
from toolkit.contract.fields import stated
from toolkit.contract.findings import finding_id
from toolkit.contract.privacy import PrivacyPlan
from toolkit.database.belonging import check_bucket
from toolkit.database.connection import Database, Lock, among, take
from toolkit.database.observation_clock import stamp
from toolkit.database.privacy_tables import erasures
from toolkit.database.service import clients, create_new, evidences, sales, service_of
from toolkit.database.tables import evidence_observations, new_id
from toolkit.errors import BucketError, BucketUnavailable, DatabaseError, PrivacyRefused, SaleNotFound
from toolkit.log.events import record_event
from toolkit.message import Message
from toolkit.privacy.persons import SaleOfPerson, deleted_sales, find_person, sales_of
from toolkit.privacy.searching import forms_of


@dataclass(frozen=True, slots=True)
class ErasurePlan:
    """Everything that an erasure would remove, and what is kept on which basis."""

    clients: tuple[UUID, ...]
    sales: tuple[SaleOfPerson, ...]
    kept: tuple[SaleOfPerson, ...]
    keys: Mapping[str, UUID]
    """The record of each object, by the key of the object."""
    files: tuple[Path, ...] = ()
    """Files beside the database that hold the CPF, the name, an address or the name of a file."""
    not_searched: tuple[Path, ...] = ()
    """Files of which that cannot be known."""
    needles: frozenset[str] = field(default=frozenset(), repr=False)


def plan_erasure(
    connection: Connection, cpf: str | None, sale_ids: Sequence[str], plan: PrivacyPlan, zone: ZoneInfo
) -> ErasurePlan:
    """Return what would be erased of the person with a CPF, or of sales.

    Raises:
        SaleNotFound: one of these sales is not there, or was erased.
        PrivacyRefused: an object is the evidence of another sale, too.
    """
    person = None if cpf is None else find_person(connection, cpf, plan, zone)
    wanted = among(sales.c.id, sale_ids)
    found = person.sales if person else sales_of(connection, wanted, sale_ids, plan, zone)
    for missing in sorted({*sale_ids} - {each.id for each in found}):
        raise SaleNotFound(missing)
    may_go = tuple(each for each in found if each.kept is None)
    kept = tuple(each for each in found if each.kept is not None)
    ids = [each.id for each in may_go]
    rows = _clients(connection, [row["id"] for row in person.clients] if person else [], ids)
    keys = _keys(connection, ids)
    needles = _needles(connection, rows, ids, keys)
    return ErasurePlan(tuple(row["id"] for row in rows), may_go, kept, keys, needles=needles)


def _clients(connection: Connection, ids: Sequence[UUID], sale_ids: Sequence[str]) -> list[Mapping[str, Any]]:
    """Return these clients, and those of the sales that go, but for those whom a sale that stays names.

    One that the service deleted stays, too: without the client nobody would find it by the CPF.
    """
    of_sales = sa.select(sales.c.client_id).where(among(sales.c.id, sale_ids), sales.c.client_id.is_not(None))
    named = {*ids, *connection.scalars(of_sales)}
    stay = sa.select(sales.c.client_id).where(among(sales.c.client_id, named), ~among(sales.c.id, sale_ids))
    gone = named - set(connection.scalars(stay))
    query = sa.select(clients).where(among(clients.c.id, gone)).order_by(clients.c.id)
    rows = [dict(row) for row in connection.execute(query).mappings()]
    deleted = deleted_sales(connection, [row["id"] for row in rows]) if rows else {}
    kept = {client for sale, client in deleted.items() if sale not in sale_ids}
    return [row for row in rows if row["id"] not in kept]


def _keys(connection: Connection, sale_ids: Sequence[str]) -> dict[str, UUID]:
    """Return the keys that records of these sales have or had, with their records."""
    seen = evidence_observations.c
    now = sa.select(evidences.c.object_key, evidences.c.id, evidences.c.sale_id)
    then = sa.select(seen.object_key, seen.evidence_id, seen.sale_id)
    own: dict[str, UUID] = {}
    for query, sale in ((then, seen.sale_id), (now, evidences.c.sale_id)):
        own |= {row[0]: row[1] for row in connection.execute(query.where(among(sale, sale_ids))) if row[0]}
    foreign = connection.execute(
        now.where(among(evidences.c.object_key, own), ~among(evidences.c.sale_id, sale_ids)).limit(1)
    ).one_or_none()
    if foreign is not None:
        raise PrivacyRefused(
            "The file of the record {} is the evidence of the sale {!r}, too. Nothing was removed.",
            own[foreign[0]],
            foreign[2],
        )
    return own


def _needles(
    connection: Connection, rows: Iterable[Mapping[str, Any]], sale_ids: Sequence[str], keys: Iterable[str]
) -> frozenset[str]:
    """Return the texts by which a file is known to hold data of the person."""
    texts: set[str] = set()
    for row in rows:
        cpf, phone = ("".join(filter(str.isdigit, row[each] or "")) for each in ("cpf", "phone_number"))
        # A number has no zeros in front.
        texts |= {cpf and cpf.zfill(11), cpf.lstrip("0"), phone, row["email"] or ""}
        if row["first_name"] and row["last_name"]:
            texts.add(f"{row['first_name']} {row['last_name']}")
    names, own = sa.select(evidences.c.file_name), among(evidences.c.sale_id, sale_ids)
    found = {*connection.scalars(names.where(own)), *(key.rpartition("/")[2] for key in keys)} - {None}
    # A name such as contract.pdf, which records of others have, too, tells of nobody.
    texts |= found - set(connection.scalars(names.where(among(evidences.c.file_name, found), ~own)))
    return forms_of(each for each in texts if len(each) > 4)


@dataclass(frozen=True, slots=True)
class Erasure:
    """An erasure as the ledger lists it: ids, the two people, and the basis; nothing of the person."""

    id: UUID
    at: datetime
    sales: tuple[str, ...]
    clients: tuple[UUID, ...]
    basis: str
    erased_by: Annotated[str, Field(alias="by")]
    approved_by: Annotated[str, Field(alias="approvedBy")]
    account: str | None

    def line(self) -> bytes:
        """Return its line in the ledger."""
        entry = _OF_LEDGER.dump_python(self, mode="json", by_alias=True) | {"at": self.at.isoformat()}
        return json.dumps(entry, ensure_ascii=False).encode() + b"\n"


_OF_LEDGER: Final = TypeAdapter(Erasure)


def read_ledger(place: Path) -> list[Erasure]:
    """Return the erasures that a ledger lists; there is none before the first.

    A last line that was cut is left out: nothing is erased before its line is whole.

    Raises:
        PrivacyRefused: naming the line that is no erasure.
    """
    found = []
    content = place.read_bytes() if place.exists() else b""
    for number, line in enumerate(content.splitlines(keepends=True), start=1):
        try:
            found.append(_OF_LEDGER.validate_json(line))
        except ValidationError:
            if not line.endswith(b"\n"):
                break
            raise PrivacyRefused("{}, line {}: is no erasure; the ledger was damaged.", place, number) from None
    return found


class _Rehearsed(Exception):  # it undoes a transaction, and is no error; triggers know no savepoint
    """Ends a transaction whose changes are only tried."""


def erase(
    database: Database,
    bucket: Bucket,
    plan: ErasurePlan,
    planned: Callable[[Connection], ErasurePlan],
    ledger: Path,
    *,
    basis: str,
    by: str,
    approved_by: str,
) -> Erasure:
    """Remove everything that a plan lists, once and for all: the ledger first, then files, objects and rows.

    It is ``planned`` anew at once, as a hold, a sale or a record may have come since, and what changes in the
    database is tried before. Killed in between, the rest is taken up by ``replay``.

    Raises:
        PrivacyRefused: a text is missing, the approver is the same person, there is nothing to be removed, or
            something else is to be removed than what was planned.
        WriteRefused: the file of statements has none that erases.
        WrongBucket: the database belongs to another bucket.
        BucketError: an object cannot be deleted, such as one that is locked.
    """
    basis, by, approved_by = stated(PrivacyRefused, basis, by, approved_by)
    database.service.require("erase_sales", "erase_clients")
    if not (plan.clients or plan.sales or plan.files):
        for each in plan.kept:
            raise PrivacyRefused("There is nothing that may be erased. {}: {}", each.id, each.kept)
        raise PrivacyRefused("There is nothing that may be erased.")
    ids = tuple(each.id for each in plan.sales)
    erasure = Erasure(new_id(), database.clock(), ids, plan.clients, basis, by, approved_by, database.account)
    with suppress(_Rehearsed), database.transaction() as connection:  # a missing right shows before anything goes
        check_bucket(connection, bucket)
        _change_rows(connection, erasure, plan.keys)
        connection.execute(sa.text("SET CONSTRAINTS ALL IMMEDIATE"))  # those that would refuse the commit
        raise _Rehearsed
    with database.transaction() as connection:
        _lock(connection, erasure)
        if replace(planned(connection), files=plan.files, not_searched=plan.not_searched) != plan:
            raise PrivacyRefused("What may be erased changed during the search. Nothing was removed; try again.")
        ledger.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        ledger.touch(mode=0o600)
        listed = len(read_ledger(ledger))
        with ledger.open("a+b") as file:
            file.seek(0)
            content = file.read()
            if cut := content.rpartition(b"\n")[2]:
                if listed > content.count(b"\n"):  # it is whole but for its end
                    file.write(b"\n")
                else:
                    file.truncate(len(content) - len(cut))
            file.write(erasure.line())
        sync(ledger)
        for path in plan.files:  # first: what tells them is in the rows
            path.unlink(missing_ok=True)
        _carry_out(connection, bucket, erasure, plan.keys)
    return erasure


def pending(connection: Connection, ledger: Path) -> list[Erasure]:
    """Return the erasures of a ledger of which something is in the database: it was restored, or they stopped."""
    found = []
    for each in read_ledger(ledger):
        noted = sa.select(erasures.c.id).where(erasures.c.id == each.id)
        back = connection.scalar(sa.select(sales.c.id).where(among(sales.c.id, each.sales)).limit(1)) is not None
        if connection.scalar(noted) is None or back or _clients(connection, each.clients, each.sales):
            found.append(each)
    return found


def unlisted(connection: Connection, ledger: Path) -> int:
    """Return how many erasures the database knows whose sales are not in a ledger: it was cut, or is another."""
    listed = {sale for each in read_ledger(ledger) for sale in each.sales}
    return sum(not listed.issuperset(known) for known in connection.scalars(sa.select(erasures.c.sales)))


def replay(database: Database, bucket: Bucket, ledger: Path) -> list[Erasure]:
    """Carry the erasures of a ledger out again, of which something is in the database; return them.

    Where the bucket refuses one, that is raised after the others; where the bucket is away, the rest wait.
    """
    database.service.require("erase_sales", "erase_clients")
    with database.transaction() as connection:
        check_bucket(connection, bucket)
        found = pending(connection, ledger)
    refused = None
    for each in found:
        try:
            with database.transaction() as connection:
                _lock(connection, each)
                _carry_out(connection, bucket, each, _keys(connection, each.sales))
        except BucketUnavailable:
            raise
        except BucketError as error:
            refused = error
    if refused is not None:
        raise refused
    return found


def _lock(connection: Connection, erasure: Erasure) -> None:
    """Let whoever holds, completes or withdraws something of these sales wait until the transaction ends."""
    for sale in sorted(erasure.sales):
        take(connection, Lock.SALE, sale)


def _carry_out(connection: Connection, bucket: Bucket, erasure: Erasure, keys: Mapping[str, UUID]) -> None:
    try:
        for _ in ask_each(bucket.erase, [list(keys)]):
            pass
    except BucketError as error:
        message = Message("{} The erasure {} is pending; take it up by: toolkit privacy replay", error, erasure.id)
        raise type(error)(message) from error
    present = _keys(connection, erasure.sales)
    if present.keys() <= keys.keys():
        _change_rows(connection, erasure, keys)
    else:  # credentials were given out meanwhile
        _carry_out(connection, bucket, erasure, {**keys, **present})


def _change_rows(connection: Connection, erasure: Erasure, keys: Mapping[str, UUID]) -> None:
    names: dict[str, str] = {}
    taken: set[UUID] = set()
    for number, (key, evidence) in enumerate(keys.items()):
        names[key] = f"{ERASED}/{evidence}" + (f"/{number}" if evidence in taken else "")
        taken.add(evidence)
    _lock(connection, erasure)
    take(connection, Lock.OBJECT_HISTORY)  # a reading of the bucket may have listed the objects before they went
    now = stamp(connection)
    records = set(keys.values())
    row = {"id": erasure.id, "sales": list(erasure.sales), "clients": len(erasure.clients), "erased_at": now}
    row |= {"records": len(records), "objects": len(keys), "basis": erasure.basis, "account": erasure.account}
    row |= {"erased_by": erasure.erased_by, "approved_by": erasure.approved_by}
    if connection.scalar(sa.select(erasures.c.id).where(erasures.c.id == erasure.id)) is not None:
        row["id"] = new_id()  # carried out again, after a restore
    connection.execute(sa.insert(erasures), row)
    given = {
        "now": now,
        "sales": list(erasure.sales),
        "hashes": [sha256(each.encode()).hexdigest() for each in erasure.sales],
        "records": list(records),
        "keys": list(names),
        "names": list(names.values()),
        "hidden": sorted({name for fields in HIDDEN.values() for name in fields}),
    }
    ids = {
        finding_id(code, key, sale): finding_id(code, names[key], sale)
        for code, sale, key in connection.execute(sa.text(_NAMED_BY_KEYS), given)
    }
    given |= {"known": list(ids), "ids": list(ids.values())}
    changed = {name: connection.execute(sa.text(each), given).rowcount for name, each in _STATEMENTS.items()}
    _erase_rows(connection, erasure)
    plain = {"erasure": str(erasure.id), "records": len(records), "objects": len(keys)}
    plain |= {"clients": len(erasure.clients), "events": changed["events"]}
    who = {"by": erasure.erased_by, "approvedBy": erasure.approved_by, "basis": erasure.basis}
    if erasure.account is not None:
        who["account"] = erasure.account
    record_event(connection, CustodyEvent.ERASED, now, plain | who)


def _erase_rows(connection: Connection, erasure: Erasure) -> None:
    """Have the service's own statements delete the sales with their records, and the clients."""
    service = service_of(connection)
    # One whom a sale names that came meanwhile stays, until a replay after that sale.
    gone = [row["id"] for row in _clients(connection, erasure.clients, erasure.sales)]
    for statement, relation, ids, named in (
        ("erase_sales", "erased_sales", erasure.sales, (sales.c.id, evidences.c.sale_id)),
        ("erase_clients", "erased_clients", gone, (clients.c.id,)),
    ):
        create_new(connection, relation)
        others = [sa.select(sa.func.count(each)).where(~among(each, ids)) for each in named]
        before = [connection.scalar(each) or 0 for each in others]
        if ids:
            erased = sa.table(relation, sa.column("id"))
            connection.execute(sa.insert(erased), [{"id": each} for each in ids])
            service.run(connection, statement)
        for column in named:
            if connection.scalar(sa.select(column).where(among(column, ids)).limit(1)) is not None:
                raise DatabaseError("{} left rows that it should have deleted. Nothing was changed.", statement)
        if any((connection.scalar(each) or 0) < count for each, count in zip(others, before, strict=True)):
            raise DatabaseError("{} deleted rows of others, too. Nothing was changed.", statement)


_NAMED_BY_KEYS: Final = """
    SELECT DISTINCT code, sale_id, object_key
    FROM audit.finding_observations JOIN audit.evidence_observations USING (sale_id)
    WHERE object_key = ANY(CAST(:keys AS text[]))
      AND (sale_id = ANY(CAST(:sales AS text[])) OR evidence_id = ANY(CAST(:records AS uuid[])))
"""
"""The findings whose ids may be made of the keys of objects: of the keys of now, a past moment makes others."""

_FINDINGS: Final = """
    UPDATE audit.{} AS seen SET finding_id = erased.id {}
    FROM unnest(CAST(:known AS uuid[]), CAST(:ids AS uuid[])) AS erased (known, id)
    WHERE seen.finding_id = erased.known
"""

_OF_SALES: Final = "sale_id = ANY(CAST(:sales AS text[]))"
_OF_RECORDS: Final = "evidence_id = ANY(CAST(:records AS uuid[]))"
_TEXTS: Final = {
    "evidence_openings": f"reason = '' WHERE {_OF_RECORDS}",
    "withdrawals": f"reason = '' WHERE {_OF_SALES} OR {_OF_RECORDS}",
    "waivers": f"reason = '' WHERE {_OF_SALES}",
    "waiver_revocations": f"reason = '' WHERE waiver_id IN (SELECT id FROM audit.waivers WHERE {_OF_SALES})",
    "legal_holds": f"basis = '' WHERE {_OF_SALES}",
    "hold_releases": f"reason = '' WHERE hold_id IN (SELECT id FROM audit.legal_holds WHERE {_OF_SALES})",
    "review_answers": "comment = NULL WHERE turn_id IN "
    f"(SELECT id FROM audit.review_turns WHERE {_OF_SALES} OR {_OF_RECORDS})",
    "finding_answers": "text = NULL WHERE finding_id IN "
    f"(SELECT finding_id FROM audit.finding_observations WHERE {_OF_SALES})",
}
"""The statements that empty the texts of people about the sales, by table."""

_STATEMENTS: Final = {
    "events": """
        UPDATE audit.custody_events
        SET detail = detail - CAST(:hidden AS text[]) || '{"erased": true}', salt = NULL
        WHERE NOT detail ? 'erased' AND (
            (detail ->> 'evidence')::uuid = ANY(CAST(:records AS uuid[]) || ARRAY(
                SELECT evidence_id FROM audit.evidence_observations WHERE sale_id = ANY(CAST(:sales AS text[]))
            ))
            OR (detail ->> 'observation')::bigint = ANY(ARRAY(
                SELECT id FROM audit.object_observations WHERE key COLLATE "C" = ANY(CAST(:keys AS text[]))
            )) AND kind IN ('UPLOADED', 'RESTORED', 'GONE', 'VERIFIED')
            OR detail ->> 'sale' = ANY(CAST(:hashes AS text[])) AND kind = 'COMPLETED'
        )
    """,
    "keys": f"UPDATE audit.sale_keys SET wrapped = NULL WHERE {_OF_SALES}",
    "objects": """
        UPDATE audit.object_observations AS seen
        SET key = erased.name, gone_how = CASE WHEN gone_at IS NULL THEN 'DELETED' ELSE gone_how END,
            gone_at = coalesce(gone_at, :now)
        FROM unnest(CAST(:keys AS text[]), CAST(:names AS text[])) AS erased (key, name)
        WHERE seen.key COLLATE "C" = erased.key
    """,
    "records": """
        UPDATE audit.evidence_observations AS seen
        SET object_key = erased.name, gone_at = coalesce(gone_at, :now)
        FROM unnest(CAST(:keys AS text[]), CAST(:names AS text[])) AS erased (key, name)
        WHERE seen.object_key = erased.key
          AND (seen.sale_id = ANY(CAST(:sales AS text[])) OR seen.evidence_id = ANY(CAST(:records AS uuid[])))
    """,
    "sales": f"UPDATE audit.sale_observations SET gone_at = :now WHERE {_OF_SALES} AND gone_at IS NULL",
    **{f"texts of {table}": f"UPDATE audit.{table} SET {blank}" for table, blank in _TEXTS.items()},
    **{each: _FINDINGS.format(each, "") for each in ("told_findings", "finding_answers")},
    "findings": _FINDINGS.format("finding_observations", ", gone_at = coalesce(gone_at, :now)"),
}
"""The changes of the toolkit's own tables; events first, which are found by the keys."""
