"""Add, list and revoke waivers; each is kept for ever, and so is its revocation."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from datetime import date, datetime
from operator import attrgetter
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy import Connection

from toolkit.contract.fields import stated
from toolkit.contract.toml_files import TomlTable, read_toml
from toolkit.contract.waivers import FIELDS, Waiver, WaiverRequest, read_waiver
from toolkit.database.connection import Database
from toolkit.database.observation_clock import latest, stamp
from toolkit.database.tables import new_id, sale_observations, waiver_revocations, waivers
from toolkit.errors import UnreadableFile, WaiverRefused
from toolkit.message import Message, listed


def add_waiver(database: Database, given: Mapping[str, Any], *, today: date) -> Waiver:
    """Add one waiver.

    Raises:
        WaiverRefused: a field is missing or wrong; everything that is wrong is named.
    """
    request, wrong = read_waiver(given, today=today)
    if request is None:
        raise WaiverRefused("The waiver is refused: {}.", listed(wrong))
    return add_waivers(database, [request])[0]


def add_waivers(database: Database, requests: Sequence[WaiverRequest]) -> list[Waiver]:
    """Add all of these waivers, or none; one that holds in the same words already is not added again."""
    with database.transaction() as connection:
        added_at = stamp(connection)
        known = {_asked(waiver): waiver for waiver in waivers_at(connection, added_at) if not waiver.revoked_at}
        wanted = {_asked(request): asdict(request) for request in requests}
        new = {
            asked: Waiver(**given, id=new_id(), added_at=added_at)
            for asked, given in wanted.items()
            if asked not in known
        }
        who = {"added_at": added_at, "account": database.account}
        rows = [dict(zip(_REQUESTED, asked, strict=True)) | who | {"id": new[asked].id} for asked in new]
        if rows:
            connection.execute(sa.insert(waivers), rows)
    return [(known | new)[each] for each in wanted]


def fits_a_sale(database: Database, waiver: WaiverRequest) -> bool:
    """Tell whether some sale, as it was seen last, has the id and names the partner that the waiver gives."""
    sale, given = sale_observations.c, {"sale_id": waiver.sale_id, "partner": waiver.partner}
    wanted = (sale[name] == value for name, value in given.items() if value is not None)
    with database.transaction() as connection:
        query = sa.select(sale.id).where(sale.gone_at.is_(None), *wanted).limit(1)
        return connection.scalar(query) is not None


def revoke_waiver(database: Database, waiver_id: UUID, *, reason: str, revoked_by: str) -> datetime:
    """Revoke a waiver: from this moment on its findings are open again.

    Raises:
        WaiverRefused: there is no such waiver, it was revoked before, or a text is missing.
    """
    reason, revoked_by = stated(WaiverRefused, reason, revoked_by)
    with database.transaction() as connection:
        revoked_at = stamp(connection)  # whoever revokes it at the same moment waits here
        query = sa.select(waiver_revocations.c.revoked_at).select_from(waivers.outerjoin(waiver_revocations))
        found = connection.execute(query.where(waivers.c.id == waiver_id)).one_or_none()
        if found is None:
            raise WaiverRefused("There is no waiver with the id {}; toolkit waiver list shows all.", waiver_id)
        if found.revoked_at is not None:
            before = found.revoked_at.isoformat(timespec="seconds")
            raise WaiverRefused("The waiver was revoked before, at {}.", before)
        row = {"waiver_id": waiver_id, "reason": reason, "revoked_by": revoked_by, "revoked_at": revoked_at}
        connection.execute(sa.insert(waiver_revocations), row | {"account": database.account})
    return revoked_at


def waivers_at(connection: Connection, moment: datetime | None = None) -> list[Waiver]:
    """Return every waiver that had been added by then or by now, the latest end first, as it was revoked then."""
    taken_back, moment = waiver_revocations, moment or latest(connection)
    query = (
        sa.select(*waivers.c[*_REQUESTED, "id", "added_at"], *taken_back.c["revoked_at", "revoked_by", "reason"])
        .outerjoin(taken_back, sa.and_(taken_back.c.waiver_id == waivers.c.id, taken_back.c.revoked_at <= moment))
        .where(waivers.c.added_at <= moment)
        .order_by(waivers.c.end_day.desc(), waivers.c.id)
    )
    return [Waiver(*row) for row in connection.execute(query)]


class _Waivers(TomlTable):
    waiver: Any = None


def lint_waivers(path: Path, *, today: date) -> list[tuple[WaiverRequest | None, list[Message]]]:
    """Read a file of TOML with ``[[waiver]]`` tables; return what each asks for, or what is wrong with it.

    Raises:
        UnreadableFile: the file is missing or no such file.
        SettingsError: it holds something else, too.
    """
    tables = read_toml(path, path, _Waivers)[0].waiver
    if not isinstance(tables, list) or not all(isinstance(each, dict) for each in tables):
        raise UnreadableFile("{}: write each waiver as a table [[waiver]] with {}.", path, ", ".join(FIELDS))
    return [read_waiver(given, today=today) for given in tables]


_REQUESTED: Final = ("sale_id", "partner", "code", "reason", "owner", "approved_by", "start_day", "end_day")
"""The columns that hold a request, in the order of its fields."""

_asked: Final = attrgetter(*(each.name for each in fields(WaiverRequest)))
