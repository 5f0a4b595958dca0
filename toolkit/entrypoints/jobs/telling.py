"""Decide which notices a run gives rise to, and deliver them."""

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4
from zoneinfo import ZoneInfo

from toolkit.domain.jobs.definitions import Job
from toolkit.entrypoints.jobs.job_log import JobLog
from toolkit.entrypoints.jobs.notices.email import send_email
from toolkit.entrypoints.jobs.notices.notice_settings import NoticeSettings
from toolkit.entrypoints.jobs.notices.texts import notice_text
from toolkit.entrypoints.jobs.notices.webhook import post_webhook
from toolkit.operations import Clock
from toolkit.operations.jobs.history import critical_findings, last_done
from toolkit.operations.jobs.notices import Notice, NoticeKind, note_delivery, undelivered
from toolkit.storage.database import Database

Counts = Mapping[str, Mapping[str, int]]
"""The counts of each step."""


@dataclass(frozen=True)
class Tell:
    """Sends notices through the channels that the environment names."""

    settings: NoticeSettings
    zone: ZoneInfo

    def notices(self, job: str, slot: datetime, kind: NoticeKind, content: Mapping[str, Any]) -> list[Notice]:
        """Return one notice for each way."""
        told = {**content, "host": socket.gethostname()}
        return [Notice(job, slot, kind, channel, told) for channel in self.settings.channels]

    def success(self, database: Database, job: Job, slot: datetime, counts: Counts, folder: str) -> list[Notice]:
        """Return the notices about a run that is done: what needs attention, or that all is well again."""
        found = open_sales(counts)
        content: dict[str, Any] = {**found, "folder": folder}
        attention = False
        if job.findings_above is not None and found:
            attention = found["open"] > job.findings_above
        if job.new_critical:
            before = last_done(database, job.name, slot)
            critical, new = critical_findings(database, before.ended_at if before is not None else None)
            content |= {"critical": critical, "new": new}
            attention = attention or new > 0
        return self.notices(job.name, slot, NoticeKind.ATTENTION if attention else NoticeKind.RECOVERED, content)

    def at_once(self, notices: Sequence[Notice], log: JobLog) -> None:
        """Deliver notices that no database keeps."""
        for notice in notices:
            problem = self._deliver(uuid4(), notice)
            if problem is not None:
                log.warn(f"The notice by {notice.channel} could not be delivered: {problem}.")

    def deliver(self, database: Database, clock: Clock, log: JobLog) -> None:
        """Deliver the notices that wait; one that cannot be delivered is tried again the next time."""
        for row in undelivered(database, self.settings.channels):
            problem = self._deliver(row.id, row)
            note_delivery(database, row.id, problem, clock)
            if problem is not None:
                log.warn(f"The notice by {row.channel} could not be delivered, and is tried again: {problem}.")

    def _deliver(self, id_: UUID, notice: Any) -> str | None:
        """Deliver a notice, or the row of one; return the problem, if there is one."""
        told = (notice.job, notice.slot, notice.kind, notice.content)
        text = notice_text(*told, self.settings.language, self.zone)
        if notice.channel == "email":
            assert self.settings.email is not None
            return send_email(self.settings.email, id_, text)
        assert self.settings.webhook is not None
        document = {
            "id": str(id_),
            "kind": notice.kind,
            "job": notice.job,
            "slot": notice.slot.astimezone(self.zone).isoformat(),
            **notice.content,
            "subject": text.subject,
            "text": text.body,
        }
        return post_webhook(self.settings.webhook, document)


def open_sales(counts: Counts) -> dict[str, int]:
    """Return the sales, and those that are open, as a step counted them; nothing where none did."""
    for step in counts.values():
        if {"sales", "incomplete", "conflict"} <= step.keys():
            return {"sales": step["sales"], "open": step["incomplete"] + step["conflict"]}
    return {}
