"""Tell partners of their findings by e-mail and webhook: what is new, what comes due, and what is overdue.

A partner is told at most once a day, and of each finding once a stage; nothing is sent where there is nothing to
tell. What could not be delivered is tried again by the next start, with the same id for the whole day. The
addresses are in the TOML file that ``TOOLKIT_PARTNERS`` names.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa
from pydantic import AfterValidator, Field
from sqlalchemy.dialects.postgresql import insert

from toolkit.audit.folder import Audit, AuditFacts
from toolkit.audit.partners import findings_page
from toolkit.contract.codes import NOT_TOLD_TO_PARTNERS
from toolkit.contract.events import CustodyEvent
from toolkit.contract.findings import STANDING
from toolkit.contract.toml_files import TomlTable, read_toml
from toolkit.database.observation_clock import stamp
from toolkit.database.tables import new_id, partner_notices, told_findings
from toolkit.errors import SettingsError
from toolkit.jobs.notices import ADDRESS, PARTLY, Mailer, NoticeSettings, document_bytes, is_webhook, post_signed
from toolkit.kit.connection import Kit
from toolkit.kit.shown import Shown, remark, table
from toolkit.language import Language, default_language, language
from toolkit.log.events import record_event
from toolkit.message import Message
from toolkit.reports import FORMATS as WRITERS
from toolkit.reports.reading import read_audited
from toolkit.reports.report import Report
from toolkit.settings import Environment

FORMATS: Final = ("html", "xlsx")  # the formats that a partner gets its list in

LISTS: Final = ("changes", "open", "unusable", "file-findings", "warned", "withdrawals", "waivers")
"""The lists beside the sales that a partner is sent: those of what it can mend, or may know of."""

POSTED: Final = 500  # the most findings in the document for a webhook; the rest is asked for by ``GET /findings``

SENTENCES: Final = {
    "subject": "{partner}: findings to mend: {open}, of them overdue: {overdue}",
    "asOf": "As of {moment}.",
    "new": "New: {new}",
    "due": "Due within {days} business days: {due}",
    "overdue": "Overdue: {overdue}",
    "files": "The attached page and workbook list them, with what to do. They tell of no other partner.",
}
"""The subject of a mail and the lines of its text."""


class Stage(StrEnum):
    """The stage of a finding that a partner is told of."""

    NEW = "new"
    DUE = "due"
    OVERDUE = "overdue"


def _checked(known: Callable[[str], object], rule: Message) -> AfterValidator:
    def check(text: str) -> str:
        if not known(text):
            raise ValueError(rule)
        return text

    return AfterValidator(check)


class PartnerAddress(TomlTable, strict=True):
    """The address of a partner, and the language in which it is told of its findings."""

    mail: list[Annotated[str, _checked(ADDRESS.fullmatch, Message("must be an e-mail address"))]] = Field([])
    webhook: Annotated[str, _checked(is_webhook, Message("must begin with https://"))] | None = Field(
        None, repr=False
    )
    webhook_secret_file: str | None = None
    language: Literal["pt-BR", "en"] | None = None

    def secret(self, place: Path) -> str:
        """Return the key that signs what is posted; a relative name is beside the file of addresses.

        Raises:
            SettingsError: there is none, or its file cannot be read.
        """
        try:
            return (place.parent / (self.webhook_secret_file or "")).read_text("utf-8-sig").strip()
        except (OSError, UnicodeDecodeError):
            raise SettingsError(
                "{}: webhook-secret-file must name a file that can be read: it signs what is posted", place
            ) from None


class _AddressFile(TomlTable, strict=True):
    partner: dict[str, PartnerAddress] = Field({})


def read_addresses(kit: Kit) -> tuple[Path, dict[str, PartnerAddress], NoticeSettings] | None:
    """Return the file of the partners' addresses, ``[partner."NAME"]`` each, and the settings of mails.

    Raises:
        SettingsError: the file has a mistake, or mails are to be sent without a server.
        UnreadableFile: it is no TOML.
    """
    place = Environment(kit.environ).path("TOOLKIT_PARTNERS")
    if place is None:
        return None
    found = read_toml(place, place, _AddressFile)[0].partner
    for each in found.values():
        if each.webhook is not None:
            each.secret(place)
    settings = NoticeSettings.from_environment(kit.environ, kit.settings.timezone)
    if settings.host is None and any(each.mail for each in found.values()):
        raise SettingsError("TOOLKIT_SMTP_HOST must name the mail server: partners have e-mail addresses")
    return place, found, settings


@dataclass(slots=True)
class PartnerTold:
    """One partner that was told: its findings, how many are new since it was told last, due and overdue.

    ``problem`` is why it could not be told at every address.
    """

    partner: str
    findings: int = 0
    stages: dict[Stage, int] = field(default_factory=lambda: dict.fromkeys(Stage, 0))
    problem: str | None = None


def notify_partners(kit: Kit, *, within: int = 3) -> Shown[list[PartnerTold]]:
    """Tell each partner that has an address what is new, due within so many business days, or overdue.

    Returns:
        What became of each partner that there was something to tell; today's earlier ones are not among them.

    Raises:
        SettingsError, UnreadableFile: as ``read_addresses``.
        NoAudit: no audit has been made yet.
        UnreadableFile: a file of the audit is not what was written.
    """
    read = read_addresses(kit)
    if read is None:
        nobody = remark("note", "TOOLKIT_PARTNERS names no file of addresses: no partner was told")
        return Shown([], [nobody], {"told": []})
    place, addresses, settings = read
    audit = kit.last_audit().verify()
    notified: list[PartnerTold] = []
    standing, unknown = _standing(replace(audit, threads=1), [*addresses], within)  # its session ends here
    with Mailer(settings) as mailer:
        every = [
            _Telling(kit, mailer, place, audit.facts, name, addresses[name], within, found)
            for name, found in standing.items()
        ]
        waiting = {each.partner: each for each in every if each.has_news()}
        kit.progress.begin("Telling partners", len(waiting), "partners")
        for each, own in zip(waiting.values(), audit.each_partner([*waiting]), strict=True):
            done = each.tell(*each.made(own))
            notified += [done] if done is not None else []
            kit.progress.advance(1)
        kit.progress.end()
    return _shown(notified, unknown)


def _standing(audit: Audit, partners: Sequence[str], within: int) -> tuple[dict[str, pa.Table], list[str]]:
    """Return the findings that each of these has to mend, where it has any, and those that no sale names."""
    found = audit.sql(_STANDING, partners, sorted(STANDING), NOT_TOLD_TO_PARTNERS, within)
    findings = found.drop_columns(["partner"])
    by_partner = {name: findings.filter(pc.equal(found["partner"], name)) for name in partners}
    return {name: own for name, own in by_partner.items() if len(own)}, sorted({*partners} - {*audit.partners})


def _shown(notified: list[PartnerTold], unknown: list[str]) -> Shown[list[PartnerTold]]:
    """Show what became of each partner, and the names in the file of addresses that no sale has."""
    columns = ["partner", "findings", "new", "due", "overdue", "problem"]
    rows = [(each.partner, each.findings, *each.stages.values(), each.problem or "") for each in notified]
    parts = [table("Partners with something to be told", columns, rows)]
    for name in unknown:
        parts.append(remark("note", "no sale names the partner {!r}; names are as in the sales", name))
    untold = sum(each.problem is not None for each in notified)
    if untold:
        text = Message("{} could not be told at every address; the next start tries again where it helps", untold)
        parts.append(remark("note", text))
    document = {"told": [dict(zip(columns, row, strict=True)) for row in rows], "untold": untold}
    return Shown(notified, parts, document | {"unknown": unknown}, untold > 0)


@dataclass(frozen=True, slots=True)
class _Telling:
    """One partner, and what it takes to tell it."""

    kit: Kit
    mailer: Mailer
    place: Path
    facts: AuditFacts
    partner: str
    address: PartnerAddress
    within: int
    standing: pa.Table

    def made(self, own: Audit) -> tuple[dict[str, bytes], dict[str, Any] | None]:
        """Make the files of a mail to the partner, by their names, and the findings that its webhook gets."""
        files: dict[str, bytes] = {}
        if self.address.mail:
            lists = read_audited(own, with_work=False)
            report = Report(lists, self.kit.settings.timezone, FORMATS, self.language, beside=LISTS)
            with self.kit.scratch() as scratch:
                for format_ in FORMATS:
                    path = scratch / report.file_name(format_)
                    WRITERS[format_](report, path)
                    files[path.name] = path.read_bytes()
            report.sections.clear()  # they know the report: it would be in memory until the collector comes
        if self.address.webhook is None:
            return files, None
        page, after = findings_page(own, self.partner, STANDING, limit=POSTED)
        return files, {"findings": page, "more": after is not None}

    @property
    def language(self) -> Language:
        """The language in which the partner is told."""
        code = self.address.language
        return language(code) if code else default_language(self.kit.environ)

    def has_news(self) -> bool:
        """Tell whether there is something to tell, and nobody did so today; the notice of the day gets its id."""
        new = {"id": new_id(), "partner": self.partner, "day": self.kit.today()}
        new |= {"created_at": self.kit.clock(), "tries": 0}
        with self.kit.database.transaction() as connection:
            if not self._news(connection):
                return False
            connection.execute(insert(partner_notices).values(new).on_conflict_do_nothing())
            return connection.execute(self._waiting).one_or_none() is not None

    def tell(self, files: Mapping[str, bytes], page: dict[str, Any] | None) -> PartnerTold | None:
        """Tell the partner, if there is still anything to tell, by what ``made`` returned."""
        database = self.kit.database
        with database.transaction() as connection:
            news = self._news(connection)
            mine = self._waiting.with_for_update(skip_locked=True)
            row = connection.execute(mine).one_or_none() if news else None
            if row is None:  # it was delivered, or somebody is delivering it
                return None
            done = PartnerTold(self.partner, len(self.standing))
            later = [stage for stage in self.standing["stage"].to_pylist() if stage != Stage.NEW]
            for stage in [*later, *(stage for stage in news.values() if stage == Stage.NEW)]:
                done.stages[stage] += 1
            sums, done.problem = self._deliver(row.id, done, files, page)
            now = stamp(connection)
            tried = {"tries": row.tries + 1, "problem": done.problem}
            delivered = done.problem in {None, PARTLY}
            tried |= {"delivered_at": now} if delivered else {}
            connection.execute(sa.update(partner_notices).where(partner_notices.c.id == row.id).values(tried))
            if delivered:
                finding_ids = sa.func.unnest(sa.cast([*news], sa.ARRAY(sa.Uuid(as_uuid=False))))
                stages = sa.func.unnest(sa.cast([*news.values()], sa.ARRAY(sa.Text)))
                rows = sa.select(sa.literal(row.id), finding_ids, stages)  # one statement, however many they are
                connection.execute(
                    sa.insert(told_findings).from_select(["notice_id", "finding_id", "stage"], rows)
                )
                detail = {"notice": str(row.id), "partner": self.partner, "files": sums, "findings": done.findings}
                record_event(connection, CustodyEvent.PARTNER_TOLD, now, detail)
        return done

    def _news(self, connection: sa.Connection) -> dict[str, Stage]:
        """Return the findings that the partner was not told of at their stage since they came, or came back."""
        ids, told, notice = self.standing["id"].to_pylist(), told_findings.c, partner_notices.c
        query = (
            sa.select(told.finding_id, told.stage, sa.func.max(notice.delivered_at))
            .join(partner_notices, notice.id == told.notice_id)
            .where(notice.partner == self.partner)
            .where(told.finding_id == sa.any_(sa.cast(ids, sa.ARRAY(sa.Uuid(as_uuid=False)))))
            .group_by(told.finding_id, told.stage)
        )
        known = {(str(id_), stage): at for id_, stage, at in connection.execute(query)}
        rows = zip(ids, *(self.standing[name].to_pylist() for name in ("stage", "opened_at")), strict=True)
        return {
            id_: Stage(stage)
            for id_, stage, opened_at in rows
            if (at := known.get((id_, stage))) is None or at < opened_at
        }

    @property
    def _waiting(self) -> sa.Select[Any]:
        """The notice of the day, while it is not delivered."""
        columns, today = partner_notices.c, self.kit.today()
        mine = columns.partner == self.partner, columns.day == today, columns.delivered_at.is_(None)
        return sa.select(partner_notices).where(*mine)

    def _deliver(
        self, id_: UUID, done: PartnerTold, files: Mapping[str, bytes], page: dict[str, Any] | None
    ) -> tuple[dict[str, str], str | None]:
        """Deliver by each of the partner's channels; the hashes of the files, and the first problem."""
        problems: list[str | None] = []
        sums = {name.rpartition(".")[2]: sha256(content).hexdigest() for name, content in files.items()}
        subject, text = self._text(done)
        if files:
            problems.append(self.mailer.send(id_, self.address.mail, subject, text, files))
        if page is not None and self.address.webhook is not None:
            document: dict[str, Any] = {"id": str(id_), "kind": "findings", "partner": self.partner}
            document["asOf"] = self.facts.as_of.isoformat()
            document |= {str(stage): number for stage, number in done.stages.items()}
            document |= page | {"subject": subject, "text": text}
            sums["webhook"] = sha256(document_bytes(document)).hexdigest()
            problems.append(post_signed(self.address.webhook, self.address.secret(self.place), document))
        problems.sort(key=lambda each: each == PARTLY)
        return sums, next(filter(None, problems), None)

    def _text(self, done: PartnerTold) -> tuple[str, str]:
        spoken = self.language
        values = {
            **{str(stage): number for stage, number in done.stages.items()},
            "partner": self.partner,
            "open": done.findings,
            "days": self.within,
            "moment": spoken.moment(self.facts.as_of, self.kit.settings.timezone),
        }
        wanted = [part for part in SENTENCES if part != "files" or self.address.mail]
        subject, *lines = (spoken.text(SENTENCES[part]).format(**values) for part in wanted)
        return subject, "\n".join([f"{subject}.", *lines, ""])


_STANDING: Final = """
    SELECT partner, id, opened_at,
           CASE WHEN overdue THEN 'overdue' WHEN due_in_business_days <= $4 THEN 'due' ELSE 'new' END AS stage
    FROM findings
    WHERE owner = partner AND list_contains($1, partner) AND list_contains($2, status)
        AND NOT list_contains($3, code)
"""
