"""Jobs: their file, their dates and the page of schedulers; notices, their texts and their way to servers."""

import hashlib
import hmac
import json
import re
import shutil
import ssl
import subprocess
import time
import tomllib
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from tests.support.crafted_keys import made_certificate
from tests.support.readme_commands import check_usage
from tests.support.scripted_server import Answer, scripted
from tests.support.waiting import free_port
from toolkit.jobs import definitions, notices
from toolkit.jobs.definitions import PACKAGED, RELATIVE_DATES, Job, Notify, Schedule, load_jobs, named_values
from toolkit.jobs.notices import Mailer, Notice, NoticeKind, NoticeSettings
from toolkit.language import ENGLISH, language

ID = UUID(int=7)
SAO_PAULO = ZoneInfo("America/Sao_Paulo")
DATE = datetime(2026, 3, 2, 5, tzinfo=UTC)
DUE = "02/03/2026, 02:00 (UTC-03:00)"


def notice(channel, kind=NoticeKind.FAILED, **content):
    return Notice("nightly", DATE, kind, channel, content or {"code": "KERNEL_DIED"})


def delivered(channel, environ):
    """Deliver a notice with these settings; the problem."""
    return NoticeSettings.from_environment(environ, SAO_PAULO).deliver(notice(channel), ID)


SMTP = {
    "TOOLKIT_SMTP_HOST": "127.0.0.1",
    "TOOLKIT_NOTICE_FROM": "toolkit@example.com",
    "TOOLKIT_NOTICE_TO": "ana@example.com, bruno@example.com",
}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate of 127.0.0.1 that nobody but these tests trusts, with its key."""
    return made_certificate(tmp_path_factory.mktemp("tls"))


class Mailbox:
    """The mails that a mail server accepted, and the other end of the connection of each."""

    answer = "250 OK"

    def __init__(self):
        self.mails, self.peers, self.logins = [], [], []
        self.refused = {}
        """The answers to recipients that are refused."""

    async def handle_RCPT(self, _server, _session, envelope, address, _options):  # noqa: N802  # aiosmtpd's name
        if address not in self.refused:
            envelope.rcpt_tos.append(address)
        return self.refused.get(address, "250 OK")

    async def handle_DATA(self, _server, session, envelope):  # noqa: N802
        if self.answer.startswith("250"):
            self.mails.append(envelope)
            self.peers.append(session.peer)
        return self.answer

    def login(self, _server, _session, _envelope, _mechanism, data):
        self.logins.append((data.login, data.password))
        return AuthResult(success=data.password == b"right", handled=False)


@pytest.fixture
def mailbox():
    return Mailbox()


@contextmanager
def mail_server(mailbox, certificate, security="tls"):
    """Serve a mailbox; the variables that name the server."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    options = {
        "none": {},
        "tls": {"ssl_context": context},
        "starttls": {"tls_context": context, "require_starttls": True, "authenticator": mailbox.login},
    }
    server = Controller(mailbox, hostname="127.0.0.1", port=free_port(), **options[security])
    server.start()
    try:
        yield SMTP | {"TOOLKIT_SMTP_SECURITY": security, "TOOLKIT_SMTP_PORT": str(server.port)}
    finally:
        server.stop()


@pytest.fixture
def send(mailbox, certificate, monkeypatch):
    """Sends the text to a server with a way to keep the connection secret; gives the problem."""

    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))

    def send(security, asked=None, **environ):
        with mail_server(mailbox, certificate, security) as known:
            chosen = {"TOOLKIT_SMTP_SECURITY": asked or security, "TOOLKIT_LANGUAGE": "pt-BR"}
            return delivered("email", known | chosen | environ)

    return send


def test_a_mail_arrives(send, mailbox):
    assert send("tls") is None
    [mail] = mailbox.mails
    assert (mail.mail_from, mail.rcpt_tos) == ("toolkit@example.com", ["ana@example.com", "bruno@example.com"])
    assert b"A tarefa nightly, prevista para 02/03/2026, 02:00 (UTC-03:00), falhou\r\nFrom: " in mail.content
    assert f"Message-ID: <{ID}@example.com>".encode() in mail.content
    assert "KERNEL_DIED" in mail.content.decode()


def test_mails_go_over_one_connection_until_the_server_ends_it(mailbox, certificate):
    def send():
        return mailer.send(ID, ["ana@example.com"], "x", "y")

    with mail_server(mailbox, certificate, security="none") as known:
        mailer = Mailer(NoticeSettings.from_environment(known, SAO_PAULO))
        assert [send(), send()] == [None, None]
        mailbox.answer = "552 mailbox full"
        assert send() == "SMTPDataError: the mail server answered 552"
        mailbox.answer = "250 OK"
        assert send() is None
    with mailer:
        assert send() == "ConnectionRefusedError"
        server = Controller(mailbox, hostname="127.0.0.1", port=int(known["TOOLKIT_SMTP_PORT"]))
        server.start()
        assert send() is None
    server.stop()
    first, *same, again = mailbox.peers
    assert same == [first, first]
    assert again != first


def test_the_password_comes_from_a_file_and_goes_over_tls(send, mailbox, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("right\n", "utf-8-sig")
    login = {"TOOLKIT_SMTP_USER": "toolkit", "TOOLKIT_SMTP_PASSWORD_FILE": str(secret)}
    assert send("starttls", **login) is None
    assert mailbox.logins == [(b"toolkit", b"right")]
    secret.write_text("wrong")
    assert send("starttls", **login) == "SMTPAuthenticationError: the mail server answered 535"


def test_what_a_mail_meets_is_a_problem_and_no_address_is_quoted(send, mailbox, monkeypatch):
    login = {"TOOLKIT_SMTP_USER": "toolkit", "TOOLKIT_SMTP_PASSWORD": "right"}
    assert send("none", asked="starttls", **login) == "SMTPNotSupportedError"
    assert mailbox.logins == []
    mailbox.answer = "552 <ana@example.com> mailbox full"
    assert send("tls") == "SMTPDataError: the mail server answered 552"
    monkeypatch.delenv("SSL_CERT_FILE")
    assert send("starttls") == "SSLCertVerificationError"
    assert mailbox.mails == []
    assert delivered("email", SMTP | {"TOOLKIT_SMTP_PORT": "9"}) == "ConnectionRefusedError"


def post(status, **headers):
    """Send a notice to an address that answers so; the problem, and what came there."""
    with scripted(Answer(status, headers=headers)) as server:
        environ = {"TOOLKIT_WEBHOOK_URL": f"{server.url}/hook?key=geheim", "TOOLKIT_WEBHOOK_SECRET": "shared"}
        return delivered("webhook", environ), server.requests


def test_a_webhook_is_signed():
    problem, [sent] = post(204)
    seconds, digest = (part.partition("=")[2] for part in sent.headers["X-Toolkit-Signature"].split(","))
    expected = hmac.new(b"shared", f"{seconds}.".encode() + sent.body, hashlib.sha256).hexdigest()
    assert (problem, digest) == (None, expected)
    told = json.loads(sent.body)
    assert (told["id"], told["kind"], told["code"]) == (str(ID), "failed", "KERNEL_DIED")
    assert told["logicalDate"] == "2026-03-02T02:00:00-03:00"


def test_a_webhook_that_refuses_is_a_problem_without_its_address():
    problem, sent = post(302)
    assert (problem, len(sent)) == ("the address answered 302", 1)
    environ = {"TOOLKIT_WEBHOOK_URL": "http://127.0.0.1:9/geheim", "TOOLKIT_WEBHOOK_SECRET": "x"}
    assert delivered("webhook", environ) == "NewConnectionError"


def test_a_webhook_that_never_comes_to_its_answer_is_given_up_and_no_end_is_waited_for(monkeypatch):
    assert post(200, **{"Transfer-Encoding": "chunked"})[0] is None
    monkeypatch.setattr(notices, "_WEBHOOK_SECONDS", 0.2)
    with scripted(lambda _request: time.sleep(1) or Answer(200)) as server:
        assert notices.post_signed(server.url, "shared", {}) == "TimeoutError"


def test_secrets_are_no_part_of_what_settings_show():
    secrets = dict.fromkeys(("TOOLKIT_SMTP_PASSWORD", "TOOLKIT_WEBHOOK_SECRET"), "geheim")
    addresses = {"TOOLKIT_SMTP_USER": "u", "TOOLKIT_WEBHOOK_URL": "https://hooks.example.com/geheim"}
    assert "geheim" not in repr(NoticeSettings.from_environment(SMTP | secrets | addresses, SAO_PAULO))


def test_a_notice_tells_the_counts_and_where_the_report_is():
    content = {"sales": 300, "open": 12, "critical": 2, "new": 1, "folder": "/srv/jobs/nightly/x", "host": "a"}
    subject, body = notice("email", NoticeKind.ATTENTION, **content).text(language("pt-BR"), SAO_PAULO)
    assert subject == f"A tarefa nightly, prevista para {DUE}, encontrou algo que requer atenção"
    assert body.splitlines()[1:] == [
        "Vendas em aberto: 12 de 300",
        "Achados críticos: 2, novos desde a última execução: 1",
        "Relatório: /srv/jobs/nightly/x em a",
        "toolkit job history nightly@2026-03-02T02:00-03:00",
    ]
    subject, body = notice("email", NoticeKind.MISSED, dates=["a", "b"]).text(ENGLISH, SAO_PAULO)
    assert body.splitlines()[1] == "Missed: 2, the last one due 2 Mar 2026, 02:00 (UTC-03:00)"


NEW_YORK = ZoneInfo("America/New_York")


@pytest.mark.parametrize(
    ("zone", "expression", "slots"),
    [
        (SAO_PAULO, "0 2 * * *", ["02-28 02:00 -0300", "03-01 02:00 -0300", "03-02 02:00 -0300"]),
        (NEW_YORK, "30 2 * * *", ["03-07 02:30 -0500", "03-08 03:00 -0400", "03-09 02:30 -0400"]),
        (NEW_YORK, "30 1 * * *", ["10-31 01:30 -0400", "11-01 01:30 -0400", "11-02 01:30 -0500"]),
    ],
    ids=["the clock stays", "put forward: the first time that exists", "put back: once"],
)
def test_a_daily_slot_follows_the_clock_on_the_wall_of_its_zone(zone, expression, slots):
    first = datetime.fromisoformat(f"2026-{slots[0][:5]}").replace(tzinfo=zone)
    start, end = ((first + timedelta(days=days)).astimezone(UTC) for days in (0, 3))
    found = Schedule(expression, zone).between(start, end)
    assert [slot.astimezone(zone).strftime("%m-%d %H:%M %z") for slot in found] == slots


ZONES = st.sampled_from(["America/Sao_Paulo", "America/New_York", "Australia/Lord_Howe", "UTC", "Asia/Kathmandu"])
EXPRESSIONS = st.sampled_from(
    ["0 2 * * *", "30 1 * * *", "*/20 * * * *", "0 3 1 * *", "15 0,12 * * MON", "0 * * * *"]
)
MOMENTS = st.integers(1_420_000_000, 1_800_000_000).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))


@given(zone=ZONES, expression=EXPRESSIONS, now=MOMENTS)
@example(zone="America/New_York", expression="30 1 * * *", now=datetime(2026, 11, 1, 6, 10, tzinfo=UTC))
def test_the_latest_slot_and_the_following_one_stand_on_both_sides_of_now(zone, expression, now):
    schedule = Schedule(expression, ZoneInfo(zone))
    latest, following = schedule.latest(now), schedule.following(now)
    assert latest <= now < following
    assert list(schedule.between(latest, now)) == []
    assert schedule.holds(latest)
    assert not schedule.holds(latest + timedelta(seconds=30))


def test_dates_are_counted_from_the_logical_date_in_its_zone():
    late_evening = datetime(2026, 3, 1, 2, 30, tzinfo=UTC)  # 28 February in São Paulo
    names = named_values(late_evening, SAO_PAULO, Path("x"))
    assert names == {
        "today": "2026-02-28",
        "yesterday": "2026-02-27",
        "month-start": "2026-02-01",
        "last-month-start": "2026-01-01",
        "last-month-end": "2026-01-31",
        "logical-date": "2026-02-28T23:30:00-03:00",
        "out": "x",
    }
    assert named_values(late_evening, ZoneInfo("UTC"), Path("x"))["today"] == "2026-03-01"


def test_a_length_of_time_has_its_unit():
    lengths = map(TypeAdapter(definitions.Duration).validate_python, ("90s", "15m", "6h", "2d"))
    assert [each.total_seconds() for each in lengths] == [90, 900, 21_600, 172_800]


PAGE = PACKAGED.with_name("README.md").read_text(encoding="utf-8")


def example(language):
    [found] = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return str(found)


@pytest.mark.parametrize("line", re.findall(r'(?:bin/|run: )(toolkit job [^"\n]+)', PAGE))
def test_schedulers_start_jobs_by_commands_that_are_there(line):
    command, words = check_usage(line)
    assert command.make_context(command.name, words).params.get("name") in {None, "nightly", "monthly"}


def test_the_crontab_starts_jobs_when_they_are_due_and_again():
    jobs = load_jobs(PACKAGED, SAO_PAULO)
    for line in example("crontab").splitlines():
        fields = line.split(None, 5)
        if "job run" in line:
            job = jobs[fields[5].partition("job run ")[2].split()[0]]
            due = job.schedule.following(datetime(2026, 2, 27, 12, tzinfo=UTC))
            starts = list(Schedule(" ".join(fields[:5]), SAO_PAULO).between(due - job.grace, due + job.grace))
            assert due in starts
            assert len([start for start in starts if start > due]) >= 2


def test_systemd_takes_the_units(tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd is not installed")
    program = tmp_path / "toolkit"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    service = re.sub(r"(?<=^ExecStart=)\S+", str(program), example("systemd-service"), flags=re.MULTILINE)
    (tmp_path / "toolkit-nightly.service").write_text(service)
    (tmp_path / "toolkit-nightly.timer").write_text(example("systemd-timer"))
    units = [str(path) for path in sorted(tmp_path.glob("toolkit-*"))]
    verified = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True)
    assert (verified.returncode, verified.stderr) == (0, "")


def test_the_packaged_jobs_file_explains_every_key_and_date():
    text = PACKAGED.read_text(encoding="utf-8")
    assert set(tomllib.loads(text)["jobs"]) == {"nightly", "monthly"}
    explained = set(re.findall(r"^#   ([a-z.-]+)  ", text, re.MULTILINE))
    keys = {field.alias or "" for name, field in Job.model_fields.items() if name not in {"name", "notify"}}
    assert explained == keys | {f"notify.{field.alias}" for field in Notify.model_fields.values()}
    named = set(re.findall(r"\{([a-z-]+)\}", text.partition("[jobs")[0]))
    assert named == {*RELATIVE_DATES, "logical-date", "out"}
