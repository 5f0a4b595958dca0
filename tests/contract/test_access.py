"""Access: partners act on their own sales, tokens within their scopes, revoked tokens on nothing."""

import time
from uuid import uuid4

import httpx
import pytest

from tests.contract.conftest import partner_of
from tests.contract.test_register_client import errors
from tests.support.crafted_tokens import claims, token
from tests.support.raw_http import in_process
from tests.support.request_bodies import ABSENT, CLIENT, UPLOAD, changed
from tests.support.served_process import SECRET
from tests.support.waiting import PATIENCE, wait_until
from toolkit.cli import main
from toolkit.database.tables import evidence_requests, evidences
from toolkit.http import backend

BODIES = {
    "good": UPLOAD,
    "without evidenceType": changed(UPLOAD, "evidenceType", ABSENT),
    "with evidenceType null": changed(UPLOAD, "evidenceType", None),
    "of another kind": changed(UPLOAD, "type", "audio/mpeg"),
    "empty": {},
}


@pytest.fixture
def subject():
    return f"crm-{uuid4()}"


@pytest.fixture
def ask(service, subject):
    """Ask for credentials with a token of ``subject`` and these claims."""
    with httpx.Client(base_url=service.server.url, trust_env=False, timeout=PATIENCE) as client:

        def ask(sale_id, body=UPLOAD, **named):
            sent = token(claims(**{"sub": subject, **named}), SECRET)
            return client.put(
                f"/sales/{sale_id}/evidences", json=body, headers={"Authorization": f"Bearer {sent}"}
            )

        yield ask


def test_a_partner_asks_for_its_own_sales(service, ask, subject):
    by_claim = service.sale(f"V-{uuid4()}", partner="Luz do Vale")
    by_subject = service.sale(f"V-{uuid4()}", partner=subject)

    assert ask(by_claim, partner="Luz do Vale").status_code == 200
    assert ask(by_subject).status_code == 200
    for sale, named in ((by_claim, "Luz do Vale"), (by_subject, subject)):
        [record] = service.rows(evidences, sale_id=sale)
        [row] = service.rows(evidence_requests, evidence_id=record["id"])
        assert (row["account"], row["partner"]) == (subject, named)


@pytest.mark.parametrize("named", [None, "", " ", ["Luz do Vale"], True, "Luz\0", "Luz\u200b"])
def test_a_claim_that_names_no_partner_makes_the_subject_none(service, subject, named):
    sale = service.sale(f"V-{uuid4()}", partner=subject)
    with partner_of(service.server.url, token({**claims(sub=subject), "partner": named}, SECRET)) as client:
        assert client.put(f"/sales/{sale}/evidences", json=UPLOAD).status_code == 401


@pytest.mark.parametrize("group", "AD")
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_the_sale_of_another_partner_is_answered_as_one_that_does_not_exist(service, ask, group, body):
    theirs = service.sale(f"V-{uuid4()}", group, partner="Luz do Vale")

    for named in ({}, {"partner": "Luz"}, {"partner": "luz do vale"}):
        there, nowhere = ask(theirs, body, **named), ask(f"V-{uuid4()}", body, **named)
        assert there.status_code == nowhere.status_code == (404 if body is UPLOAD else 400)
        assert there.content == nowhere.content
        assert {*there.headers} == {*nowhere.headers}
    assert service.rows(evidences, sale_id=theirs) == []


def test_the_contracts_message_for_group_d_is_for_the_partner_of_the_sale(service, ask):
    sale = service.sale(f"V-{uuid4()}", "D", partner="Luz do Vale")
    body = changed(UPLOAD, "evidenceType", ABSENT)

    assert "group D" in ask(sale, body, partner="Luz do Vale").json()["message"]
    assert errors(ask(sale, body, partner="Luz do Vale")) == {"evidenceType": "Required"}
    assert "group D" not in ask(sale, body).json()["message"]


@pytest.mark.parametrize(("setting", "status"), [("any", 200), ("none", 404)])
def test_a_sale_without_a_partner_follows_the_setting(environ, service, setting, status):
    sale = service.sale(f"V-{uuid4()}")
    with (
        in_process({**environ, "TOOLKIT_UNASSIGNED_SALES": setting}) as server,
        partner_of(server.url, token(claims(), SECRET)) as partner,
    ):
        assert partner.put(f"/sales/{sale}/evidences", json=UPLOAD).status_code == status


def test_a_token_is_taken_for_its_scopes_only(service, ask):
    sale = service.sale(f"V-{uuid4()}")

    def register(scope):
        with partner_of(service.server.url, token(claims(scope=scope), SECRET)) as partner:
            return partner.post("/clients", json=CLIENT)

    assert ask(sale, scope="evidence:request").status_code == 200
    assert register("clients:register openid").status_code == 200
    for refused in (ask(sale, {}, scope="clients:register"), register("evidence:request"), register("")):
        assert (refused.status_code, refused.json()["code"]) == (403, 403)
        assert "insufficient_scope" in refused.headers["www-authenticate"]


def test_a_revoked_token_is_refused_by_a_running_server(run, environ, monkeypatch, subject):
    monkeypatch.setattr(backend, "REVOCATIONS_SECONDS", 0.05)

    def sent(**named):
        return token(claims(**{"sub": subject, **named}), SECRET)

    def revoke(*args, noticed_by):
        assert main(["token", "revoke", *args, "--reason", "test"], environ) == 0
        wait_until(lambda: status(noticed_by) == 401)

    with in_process(environ) as server:

        def status(each):
            with partner_of(server.url, each) as partner:
                return partner.get("/nothing").status_code

        one, another, hidden = sent(jti="one"), sent(jti="another"), sent(iat=None)
        assert [status(each) for each in (one, another, hidden)] == [404, 404, 404]
        revoke("--id", "one", noticed_by=one)
        assert [status(each) for each in (one, another, hidden)] == [401, 404, 404]
        revoke("--subject", subject, noticed_by=another)
        assert [status(each) for each in (one, another, hidden)] == [401, 401, 401]
        assert status(sent(iat=int(time.time()) + 2)) == 404
        assert status(token(claims(sub=f"{subject}-2"), SECRET)) == 404
    run("token", "revoke", "--reason", "x", ends=2, within=environ)


def test_revocation_is_judged_before_quotas_and_those_before_scope_and_sale(environ, service, subject):
    limited = {
        **environ,
        "TOOLKIT_QUOTA_REQUESTS": "1",
        "TOOLKIT_QUOTA_WRONG_TOKENS": "1",
        "TOOLKIT_TRUSTED_PROXIES": "127.0.0.1",
    }
    foreign, unknown = service.sale(f"V-{uuid4()}", partner="another"), f"V-{uuid4()}"
    assert main(["token", "revoke", "--id", subject, "--reason", "test"], environ) == 0
    with in_process(limited) as server:

        def status(sale_id, **named):
            with partner_of(server.url, token(claims(**{"sub": subject, **named}), SECRET)) as partner:
                partner.headers["X-Forwarded-For"] = address
                return partner.put(f"/sales/{sale_id}/evidences", json=UPLOAD).status_code

        address, other = subject, f"{subject}-2"  # nobody else's
        assert status(foreign, jti=subject) == 401
        assert status(unknown, jti=subject) == 429  # of the address: the subject still has all of its own
        assert [status(foreign), status(unknown, sub=other, scope="clients:register")] == [404, 403]
        assert [status(foreign), status(unknown, scope="clients:register")] == [429, 429]
        address = other
        assert status(unknown, jti=subject) == 401
