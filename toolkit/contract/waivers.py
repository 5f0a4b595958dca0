"""Waivers: a finding is accepted for a time, by two people, with a reason and an end."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final
from uuid import UUID

from toolkit.contract.codes import no_finding
from toolkit.contract.fields import MISLEADING, NOT_MISLEADING, TRIMMED, check_date
from toolkit.contract.people import person
from toolkit.message import Message

FIELDS: Final = ("sale", "partner", "code", "reason", "owner", "approvedBy", "start", "end")
"""The fields of a waiver as files and messages write them."""

LONGEST_DAYS: Final = 366  # for which a finding may be accepted before somebody decides again


@dataclass(frozen=True, slots=True)
class WaiverRequest:
    """A waiver that somebody asks for; at least one of sale, partner and code, and all that are given must fit.

    It holds from the day ``start`` up to the day before ``end``, in the time zone of the settings.
    """

    sale_id: str | None
    partner: str | None
    code: str | None
    reason: str
    owner: str
    approved_by: str
    start: date
    end: date


@dataclass(frozen=True, slots=True)
class Waiver(WaiverRequest):
    """A waiver that was added, and perhaps revoked."""

    id: UUID
    added_at: datetime
    revoked_at: datetime | None = None
    revoked_by: str | None = None
    revoked_reason: str | None = None

    def holds(self, day: date) -> bool:
        """Tell whether it waives findings on this day; a revoked one waives nothing."""
        return self.revoked_at is None and self.start <= day < self.end

    def state(self, day: date) -> str:
        """Return ``revoked``, ``ended``, ``holds``, or ``later`` for one that will hold."""
        if self.revoked_at is not None or self.end <= day:
            return "revoked" if self.revoked_at is not None else "ended"
        return "holds" if self.holds(day) else "later"

    def days_left(self, day: date) -> int:
        """Return the days until it ends."""
        return (self.end - day).days


def read_waiver(given: Mapping[str, Any], *, today: date) -> tuple[WaiverRequest | None, list[Message]]:
    """Return the waiver that these fields describe, or everything that is wrong with them."""
    texts = {name: _text(given.get(name)) for name in FIELDS}
    days = {name: _day(given.get(name)) for name in ("start", "end")}
    start, end, code = days["start"] or today, days["end"], texts["code"].upper()
    wrong = [Message("{} is no field of a waiver", name) for name in given if name not in FIELDS]
    wrong += [
        Message("{}: {}", name, Message("Must be a string"))
        for name, value in given.items()
        if not isinstance(value, str | date | None)
    ]
    if not texts["reason"]:
        wrong.append(Message("reason is required"))
    for name in ("owner", "approvedBy"):
        if not person(texts[name]):
            wrong.append(Message("{} must be a name in Latin letters" if texts[name] else "{} is required", name))
    wrong += [Message("{} {}", name, Message(NOT_MISLEADING)) for name in FIELDS if MISLEADING.search(texts[name])]
    if not (texts["sale"] or texts["partner"] or code):
        wrong.append(Message("a waiver needs a sale, a partner or a code"))
    if person(texts["owner"]) == person(texts["approvedBy"]) != "":
        wrong.append(Message("approvedBy must be somebody else than the owner"))
    if code and (refused := no_finding(code)) is not None:
        wrong.append(refused)
    for name, day in days.items():
        if texts[name] and day is None:
            wrong.append(Message("{} must be a date written YYYY-MM-DD", name))
    if not texts["end"]:
        wrong.append(Message("end is required: a date written YYYY-MM-DD, the day on which the finding is back"))
    if end is not None and end <= start:
        wrong.append(Message("end must come after start"))
    elif end is not None and end <= today:
        wrong.append(Message("end must lie in the future: the waiver would hold on no day"))
    if end is not None and (end - start).days > LONGEST_DAYS:
        wrong.append(Message("a waiver holds for at most {} days", LONGEST_DAYS))
    if wrong or end is None:
        return None, wrong
    about = (texts["sale"] or None, texts["partner"] or None, code or None)
    return WaiverRequest(*about, texts["reason"], texts["owner"], texts["approvedBy"], start, end), []


def _text(value: Any) -> str:
    return "" if value is None else str(value).strip(TRIMMED)


def _day(value: Any) -> date | None:
    with suppress(ValueError):
        return None if isinstance(value, datetime) else check_date(value)
    return None
