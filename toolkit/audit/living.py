"""The findings of an audit, each with its life: status, dates, deadline, owner and remedy."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.contract.codes import CODES, EndReason, Owner, Severity
from toolkit.contract.deadlines import Deadlines, business_days
from toolkit.contract.findings import FindingStatus
from toolkit.contract.waivers import Waiver

COLUMNS: Final = (
    "id",
    "saleId",
    "partner",
    "utilityGroup",
    "code",
    "evidenceType",
    "reason",
    "severity",
    "status",
    "firstSeen",
    "lastSeen",
    "openedAt",
    "dueAt",
    "ageDays",
    "ageBusinessDays",
    "dueInBusinessDays",
    "overdue",
    "owner",
    "remedy",
    "waiverId",
)
"""The columns of a table of living findings. ``overdue`` is false for one that is waived or resolved."""

_SEVERITIES: Final = list(map(str, Severity))
_MISSING: Final = "MISSING_"
_MOMENTS: Final = ("first_seen", "opened_at", "closed_at")
_LIFE: Final = [*_MOMENTS, "stretches"]
_NAMES: Final = {
    "id": "id",
    "sale_id": "saleId",
    "partner": "partner",
    "utility_group": "utilityGroup",
    "code": "code",
}
_FEW: Final = ("partner", "utilityGroup", "code", "reason")
_FEW_TOLD: Final = (*_FEW, "evidenceType", "severity", "status", "owner", "remedy", "waiverId")
"""The columns with few distinct values: each is stored and looked up once, whatever the number of findings."""

_DAYS: Final = {
    "dueAt": "datetime64[us, UTC]",
    "ageDays": "int64",
    "ageBusinessDays": "int64",
    "dueInBusinessDays": "int64",
    "overdue": "bool",
}
_STANDING: Final = {False: str(FindingStatus.OPEN), True: str(FindingStatus.REOPENED)}
"""The status of a finding that is there, by whether it had been gone before."""

_TALLY: Final = ("partner", "status", "overdue")

_CATALOGUED: Final = dict.fromkeys(("severity", "owner", "remedy", "evidenceType"), "category")


def living(
    present: pd.DataFrame,
    lives: pd.DataFrame,
    audits: Sequence[datetime],
    waivers: Sequence[Waiver],
    moment: datetime,
    deadlines: Deadlines,
) -> pd.DataFrame:
    """Join the findings that are present at a moment with their lives until then; those gone are ``resolved``.

    The lives may tell in ``sale_gone`` which ended because their sale was gone, which is the reason then.
    The gravest come first, then those that are due first.
    """
    places = places_in(lives, present)
    gone = lives.drop(index=lives.index[places[places >= 0]])
    found = pd.concat(
        [_present(present, lives.reindex(columns=_LIFE), places, moment), _resolved(gone, audits, moment)]
    )
    found = found.reset_index(drop=True).astype(dict.fromkeys(_FEW, "category"))
    found = _with_days(_with_waivers(found, waivers, deadlines.day_of(moment)), deadlines)
    found = found.assign(**_made(found, ["code", "reason", "partner"], _catalogued, _CATALOGUED))
    found = found[list(COLUMNS)].astype(dict.fromkeys(_FEW_TOLD, "category"))
    order = found[["dueAt", "saleId", "code"]].assign(
        weight=found["severity"].cat.set_categories(_SEVERITIES, ordered=True),
        gone=found["status"] == FindingStatus.RESOLVED,
    )
    places = order.sort_values(["gone", "weight", "dueAt", "saleId", "code"], kind="stable").index.to_numpy()
    del order
    return pd.DataFrame({name: found.pop(name).array.take(places) for name in COLUMNS}, copy=False)


def tallied(
    standing: pd.DataFrame, resolved: int, waivers: Sequence[Waiver], moment: datetime, deadlines: Deadlines
) -> pd.DataFrame:
    """Return the tally of findings that are given in groups, see ``history.standing_findings``, and resolved."""
    found = standing.assign(
        status=standing["again"].map(_STANDING), firstSeen=standing["openedAt"], until=pd.Timestamp(moment)
    )
    found = _with_days(_with_waivers(found, waivers, deadlines.day_of(moment)), deadlines)
    gone = pd.DataFrame(
        {"partner": None, "status": str(FindingStatus.RESOLVED), "overdue": False, "findings": [resolved]}
    )
    return pd.concat([tally(found), gone], ignore_index=True)


def tally(found: pd.DataFrame) -> pd.DataFrame:
    """Count ``findings`` by ``partner``, ``status`` and ``overdue``; a row that does not tell how many is one."""
    counted = found.assign(findings=found.get("findings", 1))
    return counted.groupby(list(_TALLY), observed=True, dropna=False)["findings"].sum().reset_index()


def places_in(lives: pd.DataFrame, present: pd.DataFrame) -> npt.NDArray[np.int32]:
    """Return the place of each present finding among the lives, -1 where it has none yet."""
    wanted, known = (pa.array(table["id"], pa.large_string()) for table in (present, lives))
    places: npt.NDArray[np.int32] = pc.index_in(wanted, known).fill_null(-1).to_numpy()
    return places


def _present(
    present: pd.DataFrame, lives: pd.DataFrame, places: npt.NDArray[np.int32], moment: datetime
) -> pd.DataFrame:
    known = lives.reset_index(drop=True).reindex(places).set_axis(present.index)
    back = known["closed_at"].notna()
    again = back | (known["stretches"].fillna(0) > 1)
    first, opened = (pd.to_datetime(known[name], utc=True) for name in ("first_seen", "opened_at"))
    return _named(present).assign(
        reason=present["reason"],
        status=again.map(_STANDING).astype(object),
        firstSeen=first.fillna(pd.Timestamp(moment)),
        openedAt=opened.where(~back).fillna(pd.Timestamp(moment)),
        lastSeen=pd.Timestamp(moment).tz_convert("UTC"),
        until=pd.Timestamp(moment).tz_convert("UTC"),
    )


def _resolved(gone: pd.DataFrame, audits: Sequence[datetime], moment: datetime) -> pd.DataFrame:
    gone = gone.reindex(columns=["id", "code", "sale_id", "partner", "utility_group", "sale_gone", *_MOMENTS])
    first, opened, closed = (pd.to_datetime(gone[name], utc=True) for name in _MOMENTS)
    ended = closed.fillna(pd.Timestamp(moment))
    before = {end: audits[bisect_left(audits, end) - 1] for end in ended.unique() if audits and audits[0] < end}
    last = pd.to_datetime(ended.map(before), utc=True).fillna(opened)
    last = last.where(last >= opened, opened)
    return _named(gone).assign(
        reason=gone["sale_gone"].map({True: str(EndReason.SALE_GONE)}).astype(object),
        status=str(FindingStatus.RESOLVED),
        firstSeen=first,
        openedAt=opened,
        lastSeen=last,
        until=last,
    )


def _named(found: pd.DataFrame) -> pd.DataFrame:
    kinds = {ours: "category" if ours in _FEW else "str" for ours in _NAMES.values()}
    return found[list(_NAMES)].rename(columns=_NAMES).astype(kinds)


def _with_waivers(found: pd.DataFrame, waivers: Sequence[Waiver], day: date) -> pd.DataFrame:
    """Add the waiver that holds, which makes the status."""
    held = _waived(found, waivers, day)
    return found.assign(waiverId=held, status=found["status"].where(held.isna(), str(FindingStatus.WAIVED)))


def _waived(found: pd.DataFrame, waivers: Sequence[Waiver], day: date) -> pd.Series[Any]:
    """Return the id of the waiver that holds for each finding and ends last, null where there is none."""
    by: dict[tuple[Any, ...], Waiver] = {}
    for waiver in sorted(waivers, key=lambda each: each.request.end):
        if waiver.holds(day):
            by[waiver.request.sale_id, waiver.request.partner, waiver.request.code] = waiver
    if not by:
        return pd.Series(None, index=found.index, dtype=object)
    standing = found["status"] != FindingStatus.RESOLVED
    subjects = found[["saleId", "partner", "code"]].astype(object)
    about = zip(standing, subjects.where(subjects.notna(), None).itertuples(index=False, name=None), strict=True)
    held = [_longest(by, *subject) if stands else None for stands, subject in about]
    return pd.Series(held, index=found.index, dtype=object)


def _longest(by: dict[tuple[Any, ...], Waiver], sale: Any, partner: Any, code: Any) -> str | None:
    keys = ((one, whose, what) for one in (sale, None) for whose in (partner, None) for what in (code, None))
    fitting = [by[key] for key in keys if key in by]
    longest = max(fitting, key=lambda waiver: waiver.request.end, default=None)
    return None if longest is None else str(longest.id)


def _with_days(found: pd.DataFrame, deadlines: Deadlines) -> pd.DataFrame:
    """Add deadline and ages."""
    of = ["openedAt", "firstSeen", "until", "code", "utilityGroup"]
    days = _made(found, of, partial(_days, deadlines), _DAYS)
    standing = found["status"].isin([FindingStatus.OPEN, FindingStatus.REOPENED])
    return found.assign(**days).assign(overdue=days["overdue"] & standing)


def _days(
    deadlines: Deadlines, opened: datetime, since: datetime, until: datetime, code: str, group: str | None
) -> tuple[datetime, int, int, int, bool]:
    """Return the values of ``_DAYS``; what is late by less than a business day is late by one."""
    due = deadlines.due_at(opened, code, group)
    first, last = deadlines.day_of(since), deadlines.day_of(until)
    left, overdue = business_days(last, deadlines.day_of(due)), last > deadlines.day_of(due)
    return due, (last - first).days, business_days(first, last), min(left, -1) if overdue else left, overdue


def _catalogued(code: str, reason: str | None, partner: str | None) -> tuple[str | None, ...]:
    """Return the values of ``_CATALOGUED`` by the catalogue; a partner that is not known cannot act."""
    named, why = CODES[code], CODES[code if pd.isna(reason) else reason]
    owner = partner if named.owner is Owner.PARTNER and not pd.isna(partner) else str(named.owner)
    evidence_type = code.removeprefix(_MISSING) if code.startswith(_MISSING) else None
    return str(named.severity), owner, why.remedy, evidence_type


def _made(
    found: pd.DataFrame, of: list[str], make: Callable[..., tuple[Any, ...]], kinds: Mapping[str, str]
) -> pd.DataFrame:
    """Return columns of these kinds that are made of others: each combination that occurs is made once."""
    keys = found[of]
    alike = keys.groupby(of, sort=False, dropna=False, observed=True).ngroup()
    rows = [make(*each) for each in keys[~alike.duplicated()].itertuples(index=False, name=None)]
    places = pd.factorize(alike)[0]
    return pd.DataFrame(rows, columns=list(kinds)).astype(dict(kinds)).take(places).set_axis(found.index)
