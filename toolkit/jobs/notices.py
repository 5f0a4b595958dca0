"""Notices to people by e-mail and webhook: numbers, codes and places, and no personal data.

A notice is written in the transaction of what it tells, once for each channel, and delivered after that; what
could not be delivered is tried again by later starts. The webhook's header ``X-Toolkit-Signature:
t=SECONDS,v1=HEX`` is the HMAC-SHA256, under the shared secret, of the seconds, a full stop and the body.
"""

import hashlib
import hmac
import json
import mimetypes
import re
import smtplib
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from email.message import EmailMessage
from enum import StrEnum
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Final, Self
from urllib.parse import urlsplit
from uuid import UUID, uuid4
from zoneinfo import ZoneInfo

import sqlalchemy as sa
from sqlalchemy import Connection

from toolkit.database.connection import Database, database_of
from toolkit.database.tables import job_notices, new_id
from toolkit.errors import SettingsError
from toolkit.language import Language, default_language
from toolkit.message import LabelledEnum
from toolkit.settings import Environment, read_fields, variable

_MOST_TRIES: Final = 50  # attempts after which a notice that cannot be delivered is given up; the history keeps it
ADDRESS: Final = re.compile(r"[^@\s,;<>]+@[^@\s,;<>]+")  # one e-mail address
_FINE: Final = 250
PARTLY: Final = "the mail server refused some recipients for good"  # the others have it: nobody gets it again
_WEBHOOK_SECONDS: Final = 60.0
_HERE: Final = {"localhost", "127.0.0.1", "::1"}


class NoticeKind(LabelledEnum):
    """The reason for a notice, and its subject."""

    FAILED = "failed", "Job {job}, due {due}, failed"
    MISSED = "missed", "Job {job} was not started when it was due"
    ATTENTION = "attention", "Job {job}, due {due}, found something that needs attention"
    RECOVERED = "recovered", "Job {job}, due {due}, is done: all is well again"


class Security(StrEnum):
    """The encryption of the connection to the mail server."""

    STARTTLS = "starttls"
    TLS = "tls"
    NONE = "none"


_PORTS: Final = {Security.STARTTLS: 587, Security.TLS: 465, Security.NONE: 25}
SENTENCES: Final = {
    "code": "Reason: {code}",
    "step": "Step: {step}",
    "dates": "Missed: {number}, the last one due {due}",
    "open": "Open sales: {open} of {sales}",
    "untold": "Partners that could not be told at every address: {untold}",
    "critical": "Critical findings: {critical}, new since the last run: {new}",
    "folder": "Report: {folder} on {host}",
}
"""The line of a notice for each part of its content."""


@dataclass(frozen=True, slots=True)
class Notice:
    """A notice about one run; its text is made of ``content``."""

    job: str
    logical_date: datetime
    kind: NoticeKind
    channel: str
    content: Mapping[str, Any]

    def text(self, language: Language, zone: ZoneInfo) -> tuple[str, str]:
        """Return subject and body in this language."""
        due, number = self.logical_date.astimezone(zone), len(self.content.get("dates", ()))
        values = {**self.content, "job": self.job, "number": number, "due": language.moment(due, zone)}
        sentences = [text for part, text in SENTENCES.items() if self.content.get(part) not in (None, "")]
        subject, *lines = (language.text(each).format(**values) for each in (self.kind.text, *sentences))
        more = f"toolkit job history {self.job}@{due.isoformat(timespec='minutes')}"
        return subject, "\n".join([f"{subject}.", *lines, more, ""])


@dataclass(frozen=True, slots=True)
class NoticeSettings:
    """The mail server and the webhook that notices go by; without any, no notice is sent."""

    language: Language
    zone: ZoneInfo
    host: str | None = variable("TOOLKIT_SMTP_HOST", Environment.text)
    port: int | None = variable("TOOLKIT_SMTP_PORT", Environment.number, 1, 65535)
    security: Security = variable("TOOLKIT_SMTP_SECURITY", Environment.choice, Security, default=Security.STARTTLS)
    sender: str = variable("TOOLKIT_NOTICE_FROM", Environment.text, default="")
    recipients: tuple[str, ...] = variable("TOOLKIT_NOTICE_TO", Environment.items, default=())
    user: str | None = variable("TOOLKIT_SMTP_USER", Environment.text)
    password: str | None = variable("TOOLKIT_SMTP_PASSWORD", Environment.secret, secret=True)
    url: str | None = variable("TOOLKIT_WEBHOOK_URL", Environment.secret, secret=True)
    secret: str = variable("TOOLKIT_WEBHOOK_SECRET", Environment.secret, default="", secret=True)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str], zone: ZoneInfo) -> Self:
        """Read the settings; an empty variable counts as not set.

        Raises:
            SettingsError: naming the variable and what is wrong with it.
        """
        read = cls(default_language(environ), zone, **read_fields(cls, Environment(environ)))
        if read.host is not None:
            if read.security is Security.NONE and read.host not in _HERE:
                raise SettingsError("TOOLKIT_SMTP_SECURITY=none is for a mail server on this machine only")
            named = {"TOOLKIT_NOTICE_TO": read.recipients, "TOOLKIT_NOTICE_FROM": (read.sender,)}
            for name, addresses in named.items():
                if not addresses or not all(map(ADDRESS.fullmatch, addresses)):
                    raise SettingsError("{} must name e-mail addresses, as TOOLKIT_SMTP_HOST is set", name)
            if (read.user is None) != (read.password is None) or not f"{read.user}{read.password}".isascii():
                raise SettingsError(
                    "TOOLKIT_SMTP_USER and TOOLKIT_SMTP_PASSWORD (or its _FILE) go together, without accents"
                )
        if read.url is not None:
            if not is_webhook(read.url):
                raise SettingsError("TOOLKIT_WEBHOOK_URL must begin with https:// unless it is on this machine")
            if not read.secret:
                raise SettingsError("TOOLKIT_WEBHOOK_SECRET (or its _FILE) must be set: it signs every notice")
        return read

    @property
    def channels(self) -> list[str]:
        """The names of the channels."""
        return [name for name, place in (("email", self.host), ("webhook", self.url)) if place is not None]

    def notices(self, job: str, date: datetime, kind: NoticeKind, content: Mapping[str, Any]) -> list[Notice]:
        """Return one notice for each channel."""
        of_host = {**content, "host": socket.gethostname()}
        return [Notice(job, date, kind, channel, of_host) for channel in self.channels]

    def deliver(self, notice: Notice, id_: UUID) -> str | None:
        """Deliver a notice; return the problem, without any address or text of others."""
        subject, body = notice.text(self.language, self.zone)
        if notice.channel == "email":
            with Mailer(self) as mailer:
                return mailer.send(id_, self.recipients, subject, body)
        date = notice.logical_date.astimezone(self.zone).isoformat()
        envelope = {"id": str(id_), "kind": notice.kind, "job": notice.job, "logicalDate": date}
        document = {**envelope, **notice.content, "subject": subject, "text": body}
        return post_signed(self.url or "", self.secret, document)


class Mailer(AbstractContextManager["Mailer"]):
    """A connection to the mail server: opened by the first mail, and again where the server ended it."""

    def __init__(self, settings: NoticeSettings) -> None:
        self._settings = settings
        self._server: smtplib.SMTP | None = None

    def __exit__(self, *_: object) -> None:
        if self._server is not None:
            with suppress(smtplib.SMTPException, OSError):
                self._server.quit()

    def send(
        self, id_: UUID, to: Sequence[str], subject: str, body: str, attached: Mapping[str, bytes] | None = None
    ) -> str | None:
        """Send a mail with files attached by name; return the problem, without any address or text of others."""
        message, sender = EmailMessage(), self._settings.sender
        message["Subject"], message["From"], message["To"] = subject, sender, ", ".join(to)
        # The same for each try, so that a mail that came twice can be known.
        message["Message-ID"] = f"<{id_}@{sender.rpartition('@')[2]}>"
        message["Auto-Submitted"] = "auto-generated"
        message.set_content(body)
        for name, content in (attached or {}).items():
            maintype, _, subtype = (mimetypes.guess_type(name)[0] or "application/octet-stream").partition("/")
            message.add_attachment(content, maintype=maintype, subtype=subtype, filename=name)
        message.set_boundary(uuid4().hex)  # else Python searches all files for one that none has
        try:
            refused = self._connected().send_message(message)
        except smtplib.SMTPResponseException as error:
            return f"{type(error).__name__}: the mail server answered {error.smtp_code}"
        except (smtplib.SMTPException, OSError) as error:
            return type(error).__name__
        if refused and all(str(code).startswith("5") for code, _ in refused.values()):
            return PARTLY
        return f"the mail server refused {len(refused)} recipients" if refused else None

    def _connected(self) -> smtplib.SMTP:
        if self._server is not None:
            with suppress(smtplib.SMTPException, OSError):
                if self._server.noop()[0] == _FINE:
                    return self._server
            self._server.close()
            self._server = None
        settings, trusted = self._settings, ssl.create_default_context()
        over_tls = partial(smtplib.SMTP_SSL, context=trusted)
        connect: Callable[..., smtplib.SMTP] = over_tls if settings.security is Security.TLS else smtplib.SMTP
        server = connect(settings.host, settings.port or _PORTS[settings.security], timeout=30)
        try:
            if settings.security is Security.STARTTLS:
                server.starttls(context=trusted)  # a server that does not offer it is an error
            if settings.user is not None and settings.password is not None:
                server.login(settings.user, settings.password)
        except BaseException:
            server.close()
            raise
        self._server = server
        return server


def post_signed(url: str, secret: str, document: Mapping[str, Any]) -> str | None:
    """Post a document to a webhook, signed; return the problem, without the address or any text of others."""
    problem: SimpleQueue[str | None] = SimpleQueue()
    # The time-out of a socket begins anew with each byte of an answer.
    threading.Thread(target=lambda: problem.put(_posted(url, secret, document)), daemon=True).start()
    try:
        return problem.get(timeout=_WEBHOOK_SECONDS)
    except Empty:
        return "TimeoutError"


def _posted(url: str, secret: str, document: Mapping[str, Any]) -> str | None:
    import urllib3

    body, seconds = document_bytes(document), int(time.time())
    digest = hmac.new(secret.encode(), f"{seconds}.".encode() + body, hashlib.sha256).hexdigest()
    headers = {"Content-Type": "application/json", "X-Toolkit-Signature": f"t={seconds},v1={digest}"}
    try:
        with urllib3.PoolManager(timeout=20, retries=False) as pool:
            answer = pool.request("POST", url, body=body, headers=headers, preload_content=False)  # may never end
    except urllib3.exceptions.HTTPError as error:
        return type(error).__name__
    return None if 200 <= answer.status < 300 else f"the address answered {answer.status}"


def document_bytes(document: Mapping[str, Any]) -> bytes:
    """Return a document as it is posted."""
    return json.dumps(document, ensure_ascii=False, default=datetime.isoformat).encode()


def is_webhook(url: str) -> bool:
    """Tell whether notices may be posted there: https, or an address of this machine."""
    parts = urlsplit(url)
    return bool(parts.hostname) and parts.scheme in ({"http", "https"} if parts.hostname in _HERE else {"https"})


def put_notices(connection: Connection, notices: Sequence[Notice]) -> None:
    """Write notices; good news only where the last that this channel was told about the job was none."""
    columns = job_notices.c
    for notice in notices:
        before = sa.select(columns.kind).where(columns.job == notice.job, columns.channel == notice.channel)
        last = connection.scalar(before.order_by(columns.created_at.desc(), columns.id.desc()).limit(1))
        if notice.kind is not NoticeKind.RECOVERED or last not in {None, NoticeKind.RECOVERED}:
            row = asdict(notice) | {"id": new_id(), "created_at": database_of(connection).clock(), "tries": 0}
            connection.execute(sa.insert(job_notices).values(row))


def deliver_notices(database: Database, settings: NoticeSettings, warn: Callable[[str], None]) -> None:
    """Deliver the notices that wait, the oldest first."""
    columns = job_notices.c
    waits = columns.delivered_at.is_(None) & (columns.tries < _MOST_TRIES) & columns.channel.in_(settings.channels)
    for found in _notices(database, waits):
        mine = sa.select(job_notices).where(waits, columns.id == found.id).with_for_update(skip_locked=True)
        with database.transaction() as connection:
            row = connection.execute(mine).one_or_none()
            if row is None:  # another start delivers it, or did
                continue
            notice = Notice(row.job, row.logical_date, NoticeKind(row.kind), row.channel, row.content)
            problem = settings.deliver(notice, row.id)
            tried = {"tries": row.tries + 1, "problem": problem}
            tried |= {"delivered_at": database.clock()} if problem in {None, PARTLY} else {}
            connection.execute(sa.update(job_notices).where(columns.id == row.id).values(tried))
        if problem:
            again = " to all" if problem == PARTLY else ", and is tried again"
            warn(f"The notice by {row.channel} could not be delivered{again}: {problem}.")


def notices_of(database: Database, job: str, logical_date: datetime) -> Sequence[sa.Row[Any]]:
    """Return the notices about a run."""
    return _notices(database, (job_notices.c.job == job) & (job_notices.c.logical_date == logical_date))


def _notices(database: Database, which: sa.ColumnElement[bool]) -> Sequence[sa.Row[Any]]:
    notices = sa.select(job_notices).where(which).order_by(job_notices.c.created_at, job_notices.c.id)
    with database.transaction() as connection:
        return connection.execute(notices).all()
