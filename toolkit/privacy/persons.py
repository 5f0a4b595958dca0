"""Find what is known of a person by the CPF, and what keeps it from being erased; note holds and requests."""

import hmac
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import date, datetime, timedelta
from hashlib import sha256
from typing import Any, Final
from uuid import UUID
from zoneinfo import ZoneInfo

import sqlalchemy as sa
from sqlalchemy import Connection
from validate_docbr import CPF

from toolkit.contract.events import CustodyEvent, LogKeys
from toolkit.contract.fields import stated
from toolkit.contract.privacy import ANSWER_DAYS, AnswerOutcome, PrivacyPlan, Right
from toolkit.database.connection import Database, Lock, among, database_of, take
from toolkit.database.observation_clock import stamp
from toolkit.database.privacy_tables import hold_releases, legal_holds, privacy_answers, privacy_requests
from toolkit.database.service import clients, evidences, sales
from toolkit.database.tables import evidence_observations, new_id, object_observations
from toolkit.errors import InvalidInput, PrivacyRefused
from toolkit.log.events import record_event
from toolkit.message import Message


@dataclass(frozen=True, slots=True)
class SaleOfPerson:
    """A sale of a person; ``kept`` says on which basis its data must not be erased, ``None`` where they may."""

    id: str
    partner: str | None
    created_at: datetime | None
    completed_at: datetime | None
    records: int
    kept: Message | None


@dataclass(frozen=True, slots=True)
class KnownPerson:
    """A person as the service's tables hold it: rows of clients, and the sales that name them."""

    cpf: str
    clients: tuple[Mapping[str, Any], ...]
    sales: tuple[SaleOfPerson, ...]


def digits_of(cpf: str) -> str:
    """Return the 11 digits of a CPF that somebody typed.

    Raises:
        InvalidInput: these are none.
    """
    digits = "".join(each for each in cpf if each not in ".- \t\r\n\ufeff")  # editors of Windows write this mark
    if len(digits) != 11 or not (digits.isascii() and digits.isdigit()):
        raise InvalidInput("A CPF has 11 digits; give it on standard input.")
    return digits


def find_person(connection: Connection, cpf: str, plan: PrivacyPlan, zone: ZoneInfo) -> KnownPerson:
    """Return what is known of the person with this CPF, with sales that the service deleted; there may be nothing.

    Raises:
        InvalidInput: it is none, or nobody has it and its check digits do not fit: somebody mistyped it.
    """
    digits = digits_of(cpf)
    # Also as a service may keep it: with a mask, or as a number.
    written = (digits, f"{digits[:3]}.{digits[3:6]}.{digits[6:9]}-{digits[9:]}", digits.lstrip("0"))
    rows = connection.execute(sa.select(clients).where(clients.c.cpf.in_(written)).order_by(clients.c.created_at))
    found = tuple(dict(row) for row in rows.mappings())
    if not found and not CPF().validate(digits):
        raise InvalidInput("Nobody has this CPF, and its check digits do not fit: it was mistyped.")
    ids = [row["id"] for row in found]
    gone = deleted_sales(connection, ids)
    return KnownPerson(digits, found, sales_of(connection, among(sales.c.client_id, ids), gone, plan, zone))


def deleted_sales(connection: Connection, client_ids: Iterable[UUID]) -> dict[str, UUID]:
    """Return the sales of clients that the service itself has deleted, each with its client; no erased ones."""
    given = {"clients": [*client_ids]}
    seen = {row.id: row.client_id for row in connection.execute(sa.text(_OF_CLIENTS), given)}
    there = set(connection.scalars(sa.select(sales.c.id).where(among(sales.c.id, seen))))
    return {sale: client for sale, client in seen.items() if sale not in there}


def sales_of(
    connection: Connection, wanted: sa.ColumnElement[bool], named: Iterable[str], plan: PrivacyPlan, zone: ZoneInfo
) -> tuple[SaleOfPerson, ...]:
    """Return sales of the service with what keeps each: a hold, credentials without a file, or a period.

    Those ``named`` are among them also where the service itself has deleted them, unless they were erased before.
    """
    query = sa.select(sales).where(wanted).order_by(sales.c.created_at, sales.c.id)
    found: list[Any] = [*connection.execute(query)]
    if gone := set(named) - {sale.id for sale in found}:
        found += connection.execute(sa.text(_DELETED), {"ids": list(gone)})
    now, ids = database_of(connection).clock(), [sale.id for sale in found]
    today = now.astimezone(zone).date()
    types: dict[str, dict[UUID, str]] = {each: {} for each in ids}
    seen, of = evidence_observations.c, evidences.c
    for query, sale in (
        (sa.select(seen.sale_id, seen.evidence_id, seen.evidence_type), seen.sale_id),
        (sa.select(of.sale_id, of.id, of.evidence_type), of.sale_id),
    ):
        for sale_id, record, evidence_type in connection.execute(query.where(among(sale, ids))):
            types[sale_id][record] = evidence_type
    held = {each.sale_id: each for each in holds_at(connection, today) if each.state == "holds"}
    lies = sa.exists().where(sa.collate(object_observations.c.key, "C") == of.object_key)
    ends = sa.select(of.sale_id, sa.func.max(of.expires_at)).where(among(of.sale_id, ids), of.expires_at > now)
    awaited = {row[0]: row[1] for row in connection.execute(ends.where(~lies).group_by(of.sale_id))}

    def kept(sale: Any) -> Message | None:
        if (hold := held.get(sale.id)) is not None:
            return Message("held: {}", hold.basis)
        if (end := awaited.get(sale.id)) is not None:  # a file may still come, also after the erasure
            until = end.astimezone(zone).isoformat(timespec="minutes")
            return Message("upload credentials are valid until {}", until)
        day = None if sale.completed_at is None else sale.completed_at.astimezone(zone).date()
        created = (sale.created_at or now).astimezone(zone).date()  # not known: it is kept from today on
        period = plan.kept_until(types[sale.id].values(), created, day, today)
        if period is None:
            return None
        basis, until = period
        return Message("kept until {}: {}", until, basis) if until else Message("kept: {}", basis)

    return tuple(
        SaleOfPerson(sale.id, sale.partner, sale.created_at, sale.completed_at, len(types[sale.id]), kept(sale))
        for sale in found
    )


_LAST: Final = """
    SELECT sale_id AS id, client_id, partner, created_at, completed_at
    FROM audit.sale_observations AS seen
    WHERE {} AND NOT EXISTS (
        SELECT FROM audit.sale_observations AS later WHERE later.sale_id = seen.sale_id AND later.id > seen.id
    ) AND NOT EXISTS (SELECT FROM audit.erasures WHERE sales ? seen.sale_id)
    ORDER BY sale_id
"""
"""Sales as they were seen last, without those that were erased."""

_OF_CLIENTS: Final = _LAST.format("client_id = ANY(CAST(:clients AS uuid[]))")
_DELETED: Final = _LAST.format("sale_id = ANY(CAST(:ids AS text[]))")


def export_of(connection: Connection, person: KnownPerson) -> dict[str, Any]:
    """Return all that the tables hold of a person, as the copy that articles 18 and 19 give a right to.

    Records that the service deleted are among it, as they were seen last.
    """
    given = {"sales": [each.id for each in person.sales]}
    of_sales = among(evidences.c.sale_id, given["sales"])
    query = sa.select(evidences).where(of_sales).order_by(evidences.c.requested_at)
    found = {row["id"]: dict(row) for row in connection.execute(sa.text(_RECORDS_SEEN), given).mappings()}
    found |= {row["id"]: dict(row) for row in connection.execute(query).mappings()}
    return {
        "cpf": person.cpf,
        "clients": list(person.clients),
        "sales": [asdict(each) | {"kept": None if each.kept is None else str(each.kept)} for each in person.sales],
        "records": [*found.values()],
    }


_RECORDS_SEEN: Final = """
    SELECT evidence_id AS id, sale_id, type, evidence_type, object_key, requested_at, expires_at
    FROM audit.evidence_observations AS seen
    WHERE sale_id = ANY(CAST(:sales AS text[])) AND NOT EXISTS (
        SELECT FROM audit.evidence_observations AS later
        WHERE later.evidence_id = seen.evidence_id AND later.id > seen.id
    )
    ORDER BY evidence_id
"""


def holds_at(connection: Connection, today: date) -> Sequence[sa.Row[Any]]:
    """Return all holds, the newest first; the ``state`` of each is ``holds``, ``ended`` or ``released``."""
    of, release = legal_holds.c, hold_releases.c
    state = sa.case((release.released_at.is_not(None), "released"), (of.until <= today, "ended"), else_="holds")
    query = (
        sa.select(of.id, of.sale_id, of.basis, of.held_by, of.until, of.held_at, release.released_at)
        .add_columns(state.label("state"))
        .outerjoin(hold_releases, release.hold_id == of.id)
        .order_by(of.held_at.desc(), of.id)
    )
    return connection.execute(query).all()


def add_hold(database: Database, sale_id: str, *, basis: str, by: str, until: date | None, today: date) -> UUID:
    """Keep the data of a sale from being erased, such as for a lawsuit; return the id of the hold.

    Raises:
        PrivacyRefused: there is no such sale, a text is missing, or the end has come already.
    """
    basis, by = stated(PrivacyRefused, basis, by)
    now, hold = database.clock(), new_id()
    if until is not None and until <= today:
        raise PrivacyRefused("A hold ends on a day that is still to come.")
    with database.transaction() as connection:
        take(connection, Lock.SALE, sale_id)  # one that is being erased is gone then
        there = connection.scalar(sa.select(sales.c.id).where(sales.c.id == sale_id))
        if there is None and connection.scalar(sa.text(_DELETED), {"ids": [sale_id]}) is None:
            raise PrivacyRefused("There is no sale with the id {!r}.", sale_id)
        row = {"id": hold, "sale_id": sale_id, "basis": basis, "held_by": by, "until": until, "held_at": now}
        connection.execute(sa.insert(legal_holds), row | {"account": database.account})
        detail = {"hold": str(hold), "sale": sale_id, "by": by, "basis": basis}
        record_event(connection, CustodyEvent.HELD, now, detail)
    return hold


def release_hold(database: Database, hold: UUID, *, reason: str, by: str) -> None:
    """Release a hold: the data of its sale may be erased again.

    Raises:
        PrivacyRefused: there is no such hold, or it was released before.
    """
    reason, by = stated(PrivacyRefused, reason, by)
    now = database.clock()
    with database.transaction() as connection:
        states = {each.id: each.state for each in holds_at(connection, now.date())}
        if hold not in states:
            raise PrivacyRefused("There is no hold with the id {}; toolkit privacy hold list shows all.", hold)
        if states[hold] == "released":
            raise PrivacyRefused("The hold was released before.")
        row = {"hold_id": hold, "reason": reason, "released_by": by, "released_at": now}
        connection.execute(sa.insert(hold_releases), row | {"account": database.account})
        record_event(connection, CustodyEvent.HOLD_RELEASED, now, {"hold": str(hold), "by": by, "reason": reason})


def subject_of(cpf: str, keys: LogKeys) -> str:
    """Return the keyed hash under which requests keep a CPF.

    Raises:
        PrivacyRefused: there is no key, so that anybody could find the CPF by trying all.
    """
    if not keys.keys:
        raise PrivacyRefused("Set TOOLKIT_LOG_KEY: without a key a CPF could be found by trying all of them.")
    return hmac.new(keys.keys[-1].encode(), digits_of(cpf).encode(), sha256).hexdigest()


def add_request(database: Database, subject: str, right: Right, received: date, *, today: date) -> sa.Row[Any]:
    """Note a request, and return its row; it is due 15 days after the day on which it came.

    Raises:
        PrivacyRefused: that day lies in the future.
    """
    if received > today:
        raise PrivacyRefused("A request came on a day that has been.")
    row = {"id": new_id(), "subject": subject, "right": str(right), "account": database.account}
    row |= {"received_on": received, "due_on": received + timedelta(days=ANSWER_DAYS)}
    with database.transaction() as connection:
        now = stamp(connection)
        insert = sa.insert(privacy_requests).values(row | {"added_at": now}).returning(privacy_requests)
        detail = {"request": str(row["id"]), "right": str(right), "subject": subject}
        record_event(connection, CustodyEvent.REQUESTED, now, detail)
        return connection.execute(insert).one()


def requests_at(connection: Connection, today: date, moment: datetime | None = None) -> Sequence[sa.Row[Any]]:
    """Return the requests that had come by then, those without an answer first, by the day for it.

    The ``state`` of each is ``open``, ``overdue``, or the outcome.
    """
    of, answer = privacy_requests.c, privacy_answers.c
    known = sa.true() if moment is None else answer.answered_at <= moment
    state = sa.func.coalesce(answer.outcome, sa.case((of.due_on < today, "overdue"), else_="open"))
    query = (
        sa.select(of.id, of.subject, of.right, of.received_on, of.due_on)
        .add_columns(answer.outcome, answer.basis, answer.answered_at, state.label("state"))
        .outerjoin(privacy_answers, sa.and_(answer.request_id == of.id, known))
        .order_by(answer.answered_at.is_not(None), of.due_on, of.id)
    )
    if moment is not None:
        query = query.where(of.added_at <= moment)
    return connection.execute(query).all()


def close_request(database: Database, request: UUID, outcome: AnswerOutcome, *, basis: str, by: str) -> None:
    """Note how a request was answered; a refusal says on which basis, as a grant does.

    Raises:
        PrivacyRefused: there is no such request, or it was answered before.
    """
    basis, by = stated(PrivacyRefused, basis, by)
    with database.transaction() as connection:
        known = {each.id: each for each in requests_at(connection, database.clock().date())}
        if request not in known:
            raise PrivacyRefused("There is no request with the id {}.", request)
        if known[request].answered_at is not None:
            raise PrivacyRefused("The request was answered before.")
        now = stamp(connection)
        row = {"request_id": request, "outcome": str(outcome), "basis": basis, "answered_by": by}
        connection.execute(sa.insert(privacy_answers), row | {"answered_at": now, "account": database.account})
        detail = {"request": str(request), "outcome": str(outcome), "by": by, "basis": basis}
        record_event(connection, CustodyEvent.ANSWERED, now, detail)


def accesses(connection: Connection, since: datetime, until: datetime) -> Sequence[sa.Row[Any]]:
    """Return who saw personal data in a time, by the custody log and the links to files that were made."""
    return connection.execute(sa.text(_ACCESSES), {"since": since, "until": until}).all()


_ACCESSES: Final = """
    SELECT opened_at AS at, 'OPENED' AS kind, CAST(opening.evidence_id AS text) AS what,
           coalesce(account, opened_by) AS account, reason, sale_id
    FROM audit.evidence_openings AS opening
    LEFT JOIN LATERAL (
        SELECT sale_id FROM audit.evidence_observations AS seen
        WHERE seen.evidence_id = opening.evidence_id
        ORDER BY seen_at > opened_at, abs(extract(epoch FROM seen_at - opened_at)), seen.id DESC LIMIT 1
    ) AS record ON true
    WHERE opened_at >= :since AND opened_at < :until
    UNION ALL
    SELECT happened_at, kind, detail ->> 'what', detail ->> 'account', detail ->> 'reason', detail ->> 'sale'
    FROM audit.custody_events
    WHERE kind = 'UNMASKED' AND happened_at >= :since AND happened_at < :until
    ORDER BY at
"""


def beyond_periods(connection: Connection, plan: PrivacyPlan, zone: ZoneInfo, keys: LogKeys) -> list[str]:
    """Return the sales whose evidence is beyond its period: all its types have one, and nothing else keeps it.

    Those of persons who have an open request stay.
    """
    limited = {str(each) for rule in plan.retention for each in rule.of}
    of = evidences.c
    types = sa.select(of.sale_id).where(among(of.evidence_type, limited))
    others = sa.select(of.sale_id).where(~among(of.evidence_type, limited), of.sale_id.is_not(None))
    wanted = sa.and_(sales.c.id.in_(types), sales.c.id.not_in(others))
    asking = _sales_with_requests(connection, keys)
    found = sales_of(connection, wanted, (), plan, zone)
    return [each.id for each in found if each.kept is None and each.id not in asking]


def _sales_with_requests(connection: Connection, keys: LogKeys) -> set[str]:
    today = database_of(connection).clock().date()
    subjects = {each.subject for each in requests_at(connection, today) if each.answered_at is None}
    if not subjects:
        return set()
    query = sa.select(sales.c.id, clients.c.cpf).join(clients, clients.c.id == sales.c.client_id)
    asking = set()
    for sale, cpf in connection.execute(query):
        with suppress(InvalidInput):  # the service may hold what is no CPF, of which nobody can ask
            if subject_of((cpf or "").zfill(11), keys) in subjects:
                asking.add(sale)
    return asking
