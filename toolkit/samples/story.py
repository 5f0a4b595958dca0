"""Act for others in the sample, day by day: the sales system, partners' software, compliance.

They happen on a real database and bucket, on a clock that stands on each day of the story in turn. Each act looks
first at what is there already, so that a second telling adds nothing, and one that broke off is gone on with.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from uuid import NAMESPACE_URL, uuid5

from toolkit.audit.changes import audits_until
from toolkit.audit.observe_bucket import sync_bucket
from toolkit.audit.run import make_audit
from toolkit.audit.waivers import add_waivers, revoke_waiver, waivers_at
from toolkit.bucket.file_store import DEFAULT_TYPE, S3Store
from toolkit.contract.codes import missing_code
from toolkit.contract.deadlines import Clock
from toolkit.contract.evidence import EvidenceType, object_key
from toolkit.contract.people import PartnerAccess, UnassignedSales
from toolkit.contract.waivers import WaiverRequest
from toolkit.database.connection import Database
from toolkit.evidence.access import own_sales
from toolkit.evidence.completion import complete_sale
from toolkit.evidence.contents import verify_contents
from toolkit.evidence.credentials import UploadLimits, request_upload, stored_records
from toolkit.evidence.inspection import Inspector
from toolkit.evidence.records import withdraw
from toolkit.intake.registration import client_ids
from toolkit.intake.sales import load_sales
from toolkit.kit.connection import Kit
from toolkit.log.sealing import seal_events
from toolkit.partner import post_file
from toolkit.samples.dataset import SampleFile, Samples, write_sales
from toolkit.samples.scenarios import DAYS, WAIVERS

PARTNER: Final = "partner-software"
ANALYST: Final = "analyst@example.com"
COMPLIANCE: Final = "compliance-lead@example.com"

_LIMITS: Final = UploadLimits(ttl_seconds=600, max_bytes=10_000_000)
_BEFORE_THE_AUDIT: Final = timedelta(minutes=5)
_SENDERS: Final = 4
_OPEN_FORMS: Final = 10
_WAIVED: Final = missing_code(EvidenceType.POV)


def end_of_story(database: Database, samples: Samples, now: datetime) -> datetime:
    """Return the end that was told of before, else now, so that a second telling tells of the same days."""
    first = samples.sales[0]
    known = database.run(own_sales, None, first.id)
    return known[0].created_at + (samples.end - first.created_at) if known else now.replace(microsecond=0)


@dataclass
class Telling:
    """One telling of the story, and what happened in it; sales come from ``folder``.

    The clock of ``database`` stands on the day that is told of.
    """

    kit: Kit
    database: Database
    samples: Samples
    folder: Path
    inspectors: tuple[Inspector, ...]
    store: S3Store
    """The bucket, for what is done in it past the toolkit."""
    audits: int = 0
    withdrawn: int = 0
    completed: int = 0

    def past(self) -> None:
        """Tell of every day before the last one, each up to its audit; those that were audited are left out."""
        audited, now = self.database.run(audits_until, self.samples.end), self.database
        # A database that was audited before gives the story other moments: its last sale tells that it ended.
        ended = self.database.run(own_sales, None, self.samples.sales[-1].id)
        for day in DAYS[:-1]:
            moment = self.samples.moment(day)
            if moment not in audited and not (ended and audited and audited[-1] >= moment):
                self.database = now.at(_standing(moment - _BEFORE_THE_AUDIT))
                self.act(day)
                self.database = now.at(_standing(moment))
                self._audit()
        self.database = now

    def act(self, day: int) -> None:
        """Do everything that others do on a day."""
        self.load_sales(day)
        known = self._records()
        asked = [file for file in self.samples.files if file.attempt.day == day and file.attempt.has_record]
        others = [file for file in asked if not file.attempt.by_manifest]
        new = [file for file in others if _name(file) not in known]
        with ThreadPoolExecutor(_SENDERS) as threads:
            for _ in threads.map(lambda file: self._send(file, file.sale.partner_on(day)), new):
                pass
        self._go_past_the_toolkit(day)
        self._withdraw(day)
        self._complete(day)
        self._waive(day)

    def load_sales(self, day: int) -> None:
        """Take over the sales as they are on a day."""
        path = self.folder / "sales.csv"
        clients = client_ids(self.database, [person["external_id"] for person in self.samples.clients])
        write_sales(self.samples.sales, path, clients, day=day)
        load_sales(self.database, path, timezone=self.kit.settings.timezone)

    def _send(self, file: SampleFile, partner: str) -> None:
        """Ask for credentials on that day, and send the file if it is sent; its form is one of today."""
        access = PartnerAccess(PARTNER, partner, UnassignedSales.NONE, _OPEN_FORMS)
        asked = request_upload(self.database, self.kit.bucket, file.sale.id, file.request, access, _LIMITS)
        if not file.attempt.is_sent:
            return
        until = datetime.now(UTC) + timedelta(seconds=_LIMITS.ttl_seconds)
        form = self.kit.bucket.presign_post(asked.fields["key"], max_bytes=_LIMITS.max_bytes, expires_at=until)
        post_file(form.url, form.fields, self.folder / file.place)

    def _go_past_the_toolkit(self, day: int) -> None:
        """Write and delete files as somebody with the keys of the bucket does."""
        for file in self.samples.files:
            if file.attempt.written == day:
                draft = self.folder / "draft"
                draft.write_bytes(file.content(anew="written" in file.attempt.deeds))
                page = file.attempt.content == "page"
                self.store.put(self._key(file), draft, media_type="text/html" if page else DEFAULT_TYPE)
            if file.attempt.deeds.get("deleted") == day:
                self.store.remove(self._key(file))

    def _key(self, file: SampleFile) -> str:
        if file.attempt.content == "outside":
            return f"recordings/{file.sale.id}/{file.name}"
        if file.attempt.content == "stray":
            requested_at = self.samples.moment(file.attempt.day)
            return object_key(uuid5(NAMESPACE_URL, file.sale.id), file.name, requested_at)
        return str(self._records()[_name(file)].object_key)

    def _withdraw(self, day: int) -> None:
        wrong = [file for file in self.samples.files if file.attempt.deeds.get("withdrawn") == day]
        records = self._records()
        for record in (records[_name(file)] for file in wrong):
            if not record.withdrawn:
                reason = "Recording of another sale, sent by mistake"
                withdraw(self.database, record.id, reason=reason, withdrawn_by=ANALYST, approved_by=COMPLIANCE)
                self.withdrawn += 1

    def _complete(self, day: int) -> None:
        for sale in self.samples.sales:
            if sale.scenario.completed == day:
                done = complete_sale(self.database, self.kit.bucket, sale.id, self.inspectors[0])
                self.completed += done.completed_at is not None and not done.already

    def _waive(self, day: int) -> None:
        # A telling that broke off may have been gone on with after something happened at the time of the wall.
        known = {(each.sale_id, each.reason): each for each in self.database.run(waivers_at)}
        for sale in self.samples.sales:
            if sale.scenario.name not in WAIVERS:
                continue
            start, end, revoked, reason = WAIVERS[sale.scenario.name]
            days = (self.samples.moment(each).date() for each in (start, end))
            request = WaiverRequest(sale.id, None, _WAIVED, reason, ANALYST, COMPLIANCE, *days)
            before = known.get((sale.id, reason))
            if start == day and before is None:
                add_waivers(self.database, [request])
            if revoked == day and before is not None and before.revoked_at is None:
                reason = "The customer cancelled the call"
                revoke_waiver(self.database, before.id, reason=reason, revoked_by=COMPLIANCE)

    def _audit(self) -> None:
        sync_bucket(self.database, self.kit.bucket)
        verify_contents(self.database, self.kit.bucket, inspectors=self.inspectors)
        seal_events(self.database, self.kit.log_signer, self.kit.log_keys)
        make_audit(self.database, self.kit.audit_plan(), verified_first=True)
        self.audits += 1

    def _records(self) -> dict[tuple[str, str, str], Any]:
        """Return the evidence records of the sample's sales, by the names of their files."""
        found = stored_records(self.database, [sale.id for sale in self.samples.sales])
        return {(record.sale_id, record.file_name, record.evidence_type): record for record in found}


def _standing(moment: datetime) -> Clock:
    return lambda: moment


def _name(file: SampleFile) -> tuple[str, str, str]:
    return file.sale.id, file.name, str(file.attempt.evidence_type)
