"""The nightly job that comes with the toolkit, on the sample, with real kernels, a mail server and a webhook.

Then everything that it leaves for people and programs is searched for the sample's people and for secrets.
"""

import json
import re
from email import message_from_bytes, policy
from html import escape, unescape

import pytest

from tests.support.crafted_keys import made_certificate
from tests.support.scripted_server import Answer, scripted
from tests.support.uploaded_sales import rows
from tests.unit.test_jobs import Mailbox, mail_server
from toolkit.contract.people import secret_values
from toolkit.intake.registration import client_ids
from toolkit.jobs.definitions import PACKAGED
from toolkit.samples.dataset import make_samples, read_clients, write_sales, write_samples

JOBS = PACKAGED.read_text().replace("notify.new-critical = true", "notify.findings = 0").replace('"6h"', '"2d"')
"""The packaged jobs, which tell of any finding here, at any hour of the day."""


@pytest.fixture
def samples(run, tmp_path, database):
    """Clients, sales and requested uploads of the sample; nothing is uploaded."""
    made, folder = make_samples(), tmp_path / "samples"
    write_samples(made, folder)
    run("clients", "load", folder / "clients.csv", "--out", tmp_path / "rejected", ends=3)
    write_sales(
        made.sales, folder / "sales.csv", client_ids(database, [each["external_id"] for each in made.clients])
    )
    run("sales", "load", folder / "sales.csv", "--overwrite")
    run("credentials", "request", folder / "manifest.csv", "--out", tmp_path / "credentials.jsonl")
    return made


def test_the_nightly_job_does_its_work_and_tells_no_personal_data(
    run, samples, embedded_environment, database, tmp_path, monkeypatch
):
    mailbox, out, certificate = Mailbox(), tmp_path / "out", made_certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with scripted(Answer(200)) as receiver, mail_server(mailbox, certificate) as known:
        (tmp_path / "jobs.toml").write_text(JOBS)
        environ = {
            **embedded_environment,
            **known,
            "TOOLKIT_WEBHOOK_URL": f"{receiver.url}/geheim-hook",
            "TOOLKIT_WEBHOOK_SECRET": "geheim-signature",
            "TOOLKIT_JOBS": str(tmp_path / "jobs.toml"),
            "TOOLKIT_JOBS_OUT": str(out),
            "TOOLKIT_LANGUAGE": "pt-BR",
        }
        nightly = run("job", "run", "nightly", "--json", within=environ)
        counts, date = nightly.told["counts"], nightly.told["logicalDate"]
        assert counts["audit"]["sales"] == counts["report"]["sales"] == len(samples.sales)
        missed = run("job", "missed", within=environ)
        shown = (["nightly"], ["--json"], [f"nightly@{date}"])
        history = [run("job", "history", *words, within=environ) for words in shown]
    assert "1 última execução: nightly" in history[0].out
    assert "0 em execução, 1 concluída" in history[0].out
    told = "".join(ran.out + ran.err for ran in (nightly, missed, *history))

    assert [json.loads(sent.body)["kind"] for sent in receiver.requests] == ["attention"]
    [mail] = mailbox.mails
    unfinished = counts["audit"]["incomplete"] + counts["audit"]["conflict"]
    assert f"Vendas em aberto: {unfinished}" in receiver.requests[0].body.decode()
    [final] = [path for path in (out / "nightly").glob("20*") if path.is_dir()]
    assert (final / "report" / "missing-evidence.html").exists()
    [executed] = (final / "report").glob("*.ipynb")
    assert str(final / "report") in executed.read_text()
    assert r"\r" not in executed.read_text()  # no bar of progress
    assert not re.search(r"\.report-", executed.read_text())

    mail = message_from_bytes(mail.content, policy=policy.default)
    told += f"{mail['Subject']} {mail.get_content()}"
    told += "".join(f"{sent.headers} {sent.body.decode()}" for sent in receiver.requests)
    told += f"{rows(database, 'TABLE audit.job_runs')} {rows(database, 'TABLE audit.job_notices')}"
    searched = [path for path in sorted(out.rglob("*")) if path.is_file() and not path.name.startswith(REPORTS)]
    assert executed in searched
    told += "".join(path.read_text() for path in searched)
    credentials = tmp_path / "credentials.jsonl"
    assert leaks_in(told, environ, [credentials]) == []
    person, signature = samples.clients[1], json.loads(credentials.read_text().splitlines()[0])["fields"]
    for leak in (
        json.dumps(f"{person['first_name']} {person['last_name']}"),
        escape(person["email"]),
        re.sub(r"(...)(...)(...)(..)", r"\1.\2.\3-\4", person["cpf"]),
        signature["X-Amz-Signature"],
        environ["TOOLKIT_WEBHOOK_SECRET"],
    ):
        assert leaks_in(told + leak, environ, [credentials]) != []


REPORTS = ("missing-evidence", "manifest", "index")
"""The files of a report: they are for those who may know the people, and mask their CPFs."""


def leaks_in(told, environ, credentials):
    """Return the personal data and the secrets that stand in a text, also where it is escaped for JSON or HTML."""
    told = unescape(re.sub(r"\\u([0-9a-f]{4})", lambda escaped: chr(int(escaped[1], 16)), told))
    secrets = {"geheim", *secret_values(environ)}
    for line in "".join(path.read_text() for path in credentials).splitlines():
        fields = json.loads(line)["fields"]
        secrets |= {value for name, value in fields.items() if name not in {"bucket", "key", "X-Amz-Algorithm"}}
    people = [each for name in ("clients.csv", "clients.xlsx") for part in read_clients(name) for each in part]
    for person in people:
        secrets |= {f"{person['first_name']} {person['last_name']}"}
        secrets |= {person[each] for each in ("email", "phone_number", "rg")}
    digits = set(re.findall(r"\d{11}", re.sub(r"(?<=\d)[.-](?=\d)", "", told)))
    found = {secret for secret in secrets if secret and secret.upper() in told.upper()}
    return sorted(found | digits & {person["cpf"] for person in people})
