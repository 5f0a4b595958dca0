"""Access: tokens end and are revoked, open forms and requests are bounded, and no time tells what is there.

The client of the toolkit does its work under them.
"""

import asyncio
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta
from types import SimpleNamespace
from uuid import uuid4

import pytest

from tests.contract.conftest import issue, partner_of
from tests.support.crafted_keys import claims, token
from tests.support.raw_http import in_process
from tests.support.request_bodies import UPLOAD, changed
from tests.support.served_process import SECRET
from tests.support.uploaded_sales import MP3, PDF, add_sale, execute, rows
from tests.support.waiting import wait_until
from toolkit.cli import main
from toolkit.database.connection import Lock, take
from toolkit.errors import FindingNotFound, InvalidFields, SaleNotFound
from toolkit.http import backend
from toolkit.http.access import RateLimits
from toolkit.kit.connection import Kit
from toolkit.partner import PartnerClient
from toolkit.settings import Quotas


@pytest.mark.parametrize("error", [SaleNotFound, FindingNotFound])
@pytest.mark.parametrize(("looked_for", "taken"), [(0.001, 0.02), (0.019, 0.02), (0.031, 0.04)])
def test_what_is_not_found_takes_as_long_however_long_it_was_looked_for(monkeypatch, error, looked_for, taken):
    spent = []
    monkeypatch.setattr(backend, "time", SimpleNamespace(monotonic=lambda: sum(spent), sleep=spent.append))

    def look():
        spent.append(looked_for)
        raise error

    workers = backend.Workers(threads=1, waiting=1, seconds=5)
    with pytest.raises(error):
        asyncio.run(workers.run(look))
    assert sum(spent) == pytest.approx(taken)


def test_a_token_that_is_revoked_or_has_expired_is_refused_by_a_running_server(environ, monkeypatch):
    subject = f"crm-{uuid4()}"
    monkeypatch.setattr(backend, "REVOCATIONS_SECONDS", 0.05)
    with in_process(environ) as server:

        def status(**named):
            with partner_of(server.url, token(claims(**named), SECRET)) as partner:
                return partner.get("/nothing").status_code

        now = int(time.time())
        assert status(sub=subject, iat=now) == 404
        assert main(["token", "revoke", "--subject", subject, "--reason", "test"], environ) == 0
        wait_until(lambda: status(sub=subject, iat=now) == 401)
        assert status(sub=subject, iat=int(time.time()) + 2) == 404
        good = {"sub": f"{subject}-2", "iat": now, "exp": now + 3600}
        assert status(**good) == 404
        server.clock.ahead = timedelta(hours=1)
        assert status(**good) == 401


SLOWLY = """
    CREATE FUNCTION slowly() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM pg_sleep(0.3); RETURN NEW; END $$;
    CREATE TRIGGER slowly BEFORE INSERT ON evidences FOR EACH ROW EXECUTE FUNCTION slowly()
"""


def test_a_sale_has_a_bounded_number_of_open_forms_of_a_type(embedded_environment, database):
    """Also where many requests at once ask for the last one, while records are stored slowly."""
    limited = {**embedded_environment, "TOOLKIT_JWT_SECRET": SECRET, "TOOLKIT_QUOTA_OPEN_FORMS": "16"}
    sale, body = add_sale(database), changed(UPLOAD, "evidenceType", "KYC")
    with (
        in_process(limited) as server,
        partner_of(server.url, token(claims(), SECRET)) as partner,
        ThreadPoolExecutor(8) as pool,
    ):

        def ask(body=body):
            return partner.put(f"/sales/{sale}/evidences", json=body)

        assert [ask().status_code for _ in range(15)] == [200] * 15
        execute(database, SLOWLY)
        assert Counter(answer.status_code for answer in pool.map(lambda _: ask(), range(8))) == {200: 1, 429: 7}
        assert len(rows(database, "SELECT FROM evidences")) == 16
        refused = ask()
        assert refused.status_code == 429
        assert 3000 < int(refused.headers["retry-after"]) <= 3600
        assert ask(UPLOAD).status_code == 200  # another type
        assert partner.put("/sales/unknown/evidences", json=body).status_code == 404


def test_a_caller_has_a_minutes_worth_at_once_and_then_its_rate(monkeypatch):
    now = 1_000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    limits = RateLimits(Quotas(requests=60))

    assert [limits.request("a") for _ in range(60)] == [0.0] * 60
    assert limits.request("a") == pytest.approx(1)
    assert limits.request("b") == 0.0
    now += 2.5
    assert [limits.request("a") for _ in range(3)] == pytest.approx([0.0, 0.0, 0.5])


def test_the_client_of_the_toolkit_uploads_reads_and_answers(environ, audited, tmp_path):
    sale, theirs = (audited.sale(f"V-{uuid4()}", partner=name) for name in ("Luz", "Sol"))
    with Kit(environ) as kit:
        of_sol = kit.audit().sql(f"SELECT id FROM findings WHERE sale_id = '{theirs}'")["id"][0]
    luz = PartnerClient(audited.server.url, issue(environ, "crm", partner="Luz"))
    # The service looks for a newer audit some seconds after the last time: somebody may have asked just before.
    wait_until(lambda: [*luz.findings()], step=0.2)
    for kind, media_type, content in (("POV", "audio/mpeg", MP3), ("DOC_CONTRATANTE", "application/pdf", PDF)):
        assert luz.completion(sale)["mayBeCompleted"] is False
        (tmp_path / kind).write_bytes(content)
        luz.upload(sale, tmp_path / kind, evidence_type=kind, media_type=media_type)
    assert luz.completion(sale)["mayBeCompleted"] is True
    assert [each["state"] for each in luz.evidences(sale)["evidences"]].count("present") == 2

    found = [*luz.findings()]
    assert {each["saleId"] for each in found} == {sale}
    due, month = max(date.fromisoformat(each["dueAt"][:10]) for each in found), timedelta(days=30)
    assert [len([*luz.findings(due_before=day)]) for day in (due - month, str(due + month))] == [0, len(found)]
    assert luz.answer(found[0]["id"], "willCome", until="2099-01-01", text="on Monday")
    with pytest.raises(InvalidFields) as wrong:
        [*luz.findings(status="solved")]
    assert [each.field for each in wrong.value.invalid] == ["status"]
    for error, refused in (
        (FindingNotFound, lambda: luz.answer(of_sol, "sentAgain")),
        (SaleNotFound, lambda: luz.completion(theirs)),
        (SaleNotFound, lambda: luz.evidences(theirs)),
    ):
        with pytest.raises(error):
            refused()
    luz.close()


def test_who_asks_for_the_sale_of_another_does_not_wait_for_it(environ, service):
    """How long the answer takes would tell that the sale is there, and that its partner is asking."""
    sale = service.sale(f"V-{uuid4()}", partner="Vale")
    sol = partner_of(service.server.url, issue(environ, partner="Sol"))
    with sol, service.database.transaction() as connection:
        take(connection, Lock.OPEN_FORMS, sale)
        theirs = sol.put(f"/sales/{sale}/evidences", json=UPLOAD)
    assert theirs.status_code == 404
