"""Personal data: where they stand, the rights of the LGPD with their days, and how long evidence is kept.

Law 13.709 of 2018 (LGPD): the rights of articles 18 and 19, the record of article 37. Resolution CD/ANPD 15 of
2024: incidents.
"""

from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field

from toolkit.contract.deadlines import is_business_day
from toolkit.contract.evidence import EvidenceType
from toolkit.contract.toml_files import TomlTable, read_toml
from toolkit.message import LabelledEnum


class Category(LabelledEnum):
    """A kind of personal data, as the record of processing names it."""

    IDENTITY = "identity", "Name, CPF, RG and date of birth"
    CONTACT = "contact", "E-mail and telephone"
    ADDRESS = "address", "Address of the installation"
    CONTRACT = "contract", "Numbers at the utility and at the partner"
    EVIDENCE = "evidence", "Recordings and documents, and the names of their files"
    STAFF = "staff", "Names and accounts of people who work with the evidence"
    TEXT = "text", "Texts that people wrote"


def _decided(text: str, *staff: str) -> dict[str, Category]:
    """Return the columns of people who decided something, and of what they wrote about it."""
    return {**dict.fromkeys(staff, Category.STAFF), text: Category.TEXT}


PERSONAL: Final[Mapping[str, Mapping[str, Category]]] = {
    "clients": {
        **dict.fromkeys(("cpf", "rg", "first_name", "last_name", "birthdate"), Category.IDENTITY),
        **dict.fromkeys(("email", "phone_number"), Category.CONTACT),
        **dict.fromkeys(("number_on_dealership", "enrollment", "external_id"), Category.CONTRACT),
    },
    "addresses": dict.fromkeys(
        ("neighborhood", "installation_number", "address", "address_number", "city", "zip_code"), Category.ADDRESS
    ),
    "evidences": {"requested_by": Category.STAFF, **dict.fromkeys(("file_name", "object_key"), Category.EVIDENCE)},
    "evidence_observations": {"object_key": Category.EVIDENCE},
    "object_observations": {"key": Category.EVIDENCE},
    "evidence_requests": {"account": Category.STAFF},
    "withdrawals": _decided("reason", "withdrawn_by", "approved_by", "account"),
    "evidence_openings": _decided("reason", "opened_by", "account"),
    "waivers": _decided("reason", "owner", "approved_by", "account"),
    "waiver_revocations": _decided("reason", "revoked_by", "account"),
    "restore_confirmations": _decided("reason", "confirmed_by", "approved_by", "account"),
    "token_revocations": _decided("reason", "subject", "revoked_by"),
    "finding_answers": _decided("text", "answered_by"),
    "review_draws": {"drawn_by": Category.STAFF},
    "review_turns": {"claimed_by": Category.STAFF},
    "review_answers": _decided("comment", "reviewer", "person", "account"),
    "job_runs": {"started_by": Category.STAFF},
    "legal_holds": _decided("basis", "held_by", "account"),
    "hold_releases": _decided("reason", "released_by", "account"),
    "privacy_requests": {"subject": Category.IDENTITY, "account": Category.STAFF},
    "privacy_answers": _decided("basis", "answered_by", "account"),
    "erasures": _decided("basis", "erased_by", "approved_by", "account"),
}
"""The columns with personal data, by table: those of clients and of files are erased, those of staff stay."""


class Right(LabelledEnum):
    """A right that a person may exercise."""

    CONFIRMATION = "confirmation", "Are data of mine processed? (art. 18, I)"
    ACCESS = "access", "All data, with origin and purpose (art. 18, II)"
    CORRECTION = "correction", "Wrong data are corrected (art. 18, III)"
    RESTRICTION = "restriction", "Excessive data are made anonymous, blocked or erased (art. 18, IV)"
    PORTABILITY = "portability", "The data for another provider (art. 18, V)"
    ERASURE = "erasure", "Data that rest on consent are erased (art. 18, VI; art. 16 excepts)"
    SHARING = "sharing", "With whom are the data shared? (art. 18, VII)"
    OBJECTION = "objection", "Processing against the law ends (art. 18, § 2)"


class AnswerOutcome(StrEnum):
    """The end of a request."""

    GRANTED = "granted"
    PARTLY = "partly"
    REFUSED = "refused"


ANSWER_DAYS: Final = 15  # calendar days for the answer to a request (LGPD, art. 19, II)
NOTICE_DAYS: Final = 3  # business days for the notice of an incident to ANPD and persons (Resolution 15/2024)
COMPLEMENT_DAYS: Final = 20  # business days for what the notice of an incident left out (Resolution 15/2024)


def business_days_after(day: date, count: int) -> date:
    """Return the last of so many business days after a day."""
    while count:
        day += timedelta(days=1)
        count -= is_business_day(day)
    return day


class Start(StrEnum):
    """The moment from which the days of a retention period are counted."""

    CREATED = "created"
    COMPLETED = "completed"


class Retention(TomlTable):
    """The days for which evidence of some types is kept, and the legal basis."""

    of: Annotated[list[EvidenceType], Field(min_length=1)]
    start: Start = Start.COMPLETED
    days: Annotated[int, Field(ge=1, le=36_600, strict=True)]
    basis: Annotated[str, Field(min_length=3, max_length=300)]

    def ends_on(self, created: date, completed: date | None) -> date | None:
        """Return the first day on which a sale's evidence may go; ``None`` while its period has not begun."""
        begun = created if self.start is Start.CREATED else completed
        return None if begun is None else begun + timedelta(days=self.days)


class PrivacyPlan(TomlTable):
    """The decisions of a company about personal data; the texts stand in its record of processing."""

    contact: str = ""
    purpose: str = ""
    legal_basis: str = ""
    sharing: str = ""
    security: str = ""
    remarks: str = ""
    retention: list[Retention] = Field(default_factory=list)

    def kept_until(
        self, types: Iterable[str], created: date, completed: date | None, today: date
    ) -> tuple[str, date | None] | None:
        """Return the basis on which a sale's evidence is still kept and until when; ``None`` where it may go."""
        rules = [each for each in self.retention if not {*types}.isdisjoint(each.of)]
        ends = [(each.basis, each.ends_on(created, completed)) for each in rules]
        kept = [(basis, end) for basis, end in ends if end is None or end > today]
        return max(kept, key=lambda each: each[1] or date.max) if kept else None


def read_plan(place: Path | None) -> PrivacyPlan:
    """Read the plan from its TOML file, as ``read_toml`` does; without one nothing is kept by a period."""
    return PrivacyPlan() if place is None else read_toml(place, place, PrivacyPlan)[0]
