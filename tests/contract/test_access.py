"""Contract, "Authentication": a valid token before anything else; own sales, scopes, revocation, and quotas."""

import asyncio
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from types import SimpleNamespace
from uuid import uuid4

import httpx
import pytest

from tests.contract.conftest import partner_of
from tests.contract.test_endpoints import errors
from tests.support.crafted_keys import claims, token, unsigned
from tests.support.raw_http import in_process
from tests.support.request_bodies import ABSENT, CLIENT, UPLOAD, changed
from tests.support.served_process import SECRET
from tests.support.waiting import PATIENCE, wait_until
from toolkit.cli import main
from toolkit.database.tables import evidence_requests, evidences
from toolkit.errors import FindingNotFound, SaleNotFound
from toolkit.http import access, backend
from toolkit.http.access import RateLimits
from toolkit.settings import Quotas

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
    by_claim = service.sale(f"V-{uuid4()}", partner=" Luz do Vale  ")
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


def test_the_contracts_message_for_group_d_is_for_the_partner_of_the_sale(service, ask):
    sale = service.sale(f"V-{uuid4()}", "D", partner="Luz do Vale")
    body = changed(UPLOAD, "evidenceType", ABSENT)

    assert "group D" in ask(sale, body, partner="Luz do Vale").json()["message"]
    assert errors(ask(sale, body, partner="Luz do Vale")) == {"evidenceType": "Required"}
    assert "group D" not in ask(sale, body).json()["message"]


@pytest.mark.parametrize(("setting", "status"), [("any", 200), ("none", 404)])
def test_a_sale_without_a_partner_follows_the_setting(environ, service, setting, status):
    unnamed = [service.sale(f"V-{uuid4()}", partner=name) for name in (None, " ")]
    with (
        in_process({**environ, "TOOLKIT_UNASSIGNED_SALES": setting}) as server,
        partner_of(server.url, token(claims(), SECRET)) as partner,
    ):
        for sale in unnamed:
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
    run("token", "revoke", "--id", "two", "--reason", " ", ends=1, within=environ)


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


GOOD = token(claims(), SECRET)

HEADERS = {
    "missing": [],
    "empty": [""],
    "token alone": [GOOD],
    "scheme alone": ["Bearer"],
    "another scheme": [f"Basic {GOOD}"],
    "two tokens in one": [f"Bearer {GOOD} {GOOD}"],
    "two headers": [f"Bearer {GOOD}", f"Bearer {GOOD}"],
    "malformed": ["Bearer a.b.c"],
    "wrongly signed": [f"Bearer {token(claims(), SECRET[::-1])}"],
    "alg none": [f"Bearer {unsigned(claims())}"],
}

PROTECTED = {
    "register": ("POST", "/clients"),
    "upload": ("PUT", "/sales/unknown/evidences"),
    "no sale id": ("PUT", "/sales//evidences"),
    "another method": ("GET", "/clients"),
    "POST on evidences": ("POST", "/sales/unknown/evidences"),
    "unknown path": ("GET", "/admin?access_token=" + GOOD),
    "nearly open": ("GET", "/health/"),
    "nearly open, encoded": ("GET", "/docs/..%2F..%2Fclients"),
    "open path below": ("GET", "/ready/clients"),
}


def is_401(answer):
    assert answer.status_code == 401, answer.text
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.headers["content-type"] == "application/json"
    assert set(answer.json()) == {"message"}
    return True


@pytest.mark.parametrize("sent", HEADERS.values(), ids=HEADERS)
@pytest.mark.parametrize(
    ("method", "path", "body"), [("POST", "/clients", CLIENT), ("PUT", "/sales/x/evidences", UPLOAD)]
)
def test_without_a_valid_token_nothing_is_done(stranger, sent, method, path, body):
    answer = stranger.request(method, path, json=body, headers=[("Authorization", each) for each in sent])

    assert is_401(answer)
    assert not any(len(each) > 10 and each.removeprefix("Bearer ") in answer.text for each in sent)


@pytest.mark.parametrize(("method", "path"), PROTECTED.values(), ids=PROTECTED)
@pytest.mark.parametrize("content", [b"", b"{", b" " * 2_000_000], ids=["no body", "broken body", "body of 2 MB"])
def test_the_token_is_asked_for_before_anything_else_is_judged(stranger, method, path, content):
    assert is_401(stranger.request(method, path, content=content))


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "Bearer "])
def test_the_scheme_is_read_in_any_case(stranger, scheme):
    sent = {"Authorization": f"{scheme} {GOOD}"}
    assert stranger.post("/clients", json=CLIENT, headers=sent).status_code == 200


@pytest.mark.parametrize(
    "path", ["/health", "/ready", "/openapi.json", "/docs", "/docs/start.js", "/docs/swagger-ui.css"]
)
def test_what_operators_need_is_open(stranger, path):
    assert stranger.get(path).status_code == 200
    assert stranger.head(path).status_code == 200
    assert is_401(stranger.get(path + "/"))


def test_a_token_that_was_good_is_refused_once_it_has_expired(environ):
    with in_process(environ) as server:
        life = timedelta(hours=1)
        expires = int((server.clock() + life).timestamp())
        with partner_of(server.url, token(claims(exp=expires), SECRET)) as partner:
            assert partner.post("/clients", json=CLIENT).status_code == 200
            server.clock.ahead = life
            assert is_401(partner.post("/clients", json=CLIENT))


def test_the_server_does_not_start_without_a_good_key(run, environ):
    without = {name: value for name, value in environ.items() if not name.startswith("TOOLKIT_JWT")}

    assert "TOOLKIT_JWT_SECRET" in run("serve", "--port", "0", ends=2, within=without).err


def test_a_token_issued_on_the_command_line_is_taken(run, stranger, service):
    issued = run("token", "issue", "--subject", "partner-b", "--ttl", "60", within=service.environ)

    assert issued.err == ""
    assert issued.out.count("\n") == 1
    headers = {"Authorization": f"Bearer {issued.out.strip()}"}
    assert stranger.post("/clients", json=CLIENT, headers=headers).status_code == 200


def is_too_many(answer):
    assert answer.status_code == 429, answer.text
    assert answer.json() == {"message": "Too many requests; try again later", "code": 429}
    return int(answer.headers["retry-after"]) > 0


def get(url, sent, path="/nothing", **headers):
    with partner_of(url, sent) as client:
        return client.get(path, headers=headers)


def test_requests_of_a_subject_are_counted(environ):
    """One a minute, as a busy machine may take seconds for a request."""
    mine, theirs = (token(claims(sub=f"crm-{uuid4()}"), SECRET) for _ in range(2))
    with in_process({**environ, "TOOLKIT_QUOTA_REQUESTS": "1"}) as server:
        assert get(server.url, mine, "/sales/unknown/completion").status_code == 404
        assert all(is_too_many(get(server.url, mine, path)) for path in ("/nothing", "/findings"))
        assert get(server.url, theirs).status_code == 404


def test_wrong_tokens_of_an_address_are_counted_and_valid_ones_still_taken(environ):
    limited = {**environ, "TOOLKIT_QUOTA_WRONG_TOKENS": "1", "TOOLKIT_TRUSTED_PROXIES": "127.0.0.1"}

    def wrong(forwarded, sent="a.b.c"):
        return get(server.url, sent, **{"X-Forwarded-For": forwarded})

    with in_process(limited) as server:
        for first, same_caller in (
            ("10.0.0.1, 192.0.2.7", "10.0.0.2, 192.0.2.7"),
            ("2001:db8::1", "2001:db8::ffff"),
            ("::ffff:198.51.100.1", "198.51.100.1"),
        ):
            assert wrong(first).status_code == 401
            assert is_too_many(wrong(same_caller))
            assert is_too_many(wrong(same_caller, None))
            assert wrong(same_caller, token(claims(), SECRET)).status_code == 404
        assert wrong("192.0.2.8").status_code == 401
        with partner_of(server.url, None) as client:  # a proxy that adds a line behind the caller's
            for answered in (401, 429):
                lines = [("X-Forwarded-For", f"10.0.0.{answered}"), ("X-Forwarded-For", "192.0.2.9")]
                assert client.get("/nothing", headers=lines).status_code == answered


def test_only_a_trusted_proxy_says_who_sends(environ):
    with in_process({**environ, "TOOLKIT_QUOTA_WRONG_TOKENS": "1"}) as server:
        answers = [
            get(server.url, None, **{"X-Forwarded-For": f"192.0.2.{place}"}).status_code for place in range(2)
        ]
    assert answers == [401, 429]


SLOWLY = """
    CREATE FUNCTION slowly() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM pg_sleep(0.3); RETURN NEW; END $$;
    CREATE TRIGGER slowly BEFORE INSERT ON evidences FOR EACH ROW EXECUTE FUNCTION slowly()
"""


@pytest.fixture
def slowly(service):
    """Records that are stored slowly from then on, so that requests at once overlap."""

    def run(statements):
        with service.database.transaction() as connection:
            connection.exec_driver_sql(statements)

    yield lambda: run(SLOWLY)
    run("DROP FUNCTION slowly CASCADE")


def test_a_sale_has_a_bounded_number_of_open_forms_of_a_type(environ, service, slowly):
    """Also where many requests at once ask for the last one."""
    sale, body = service.sale(f"V-{uuid4()}"), changed(UPLOAD, "evidenceType", "KYC")
    with (
        in_process({**environ, "TOOLKIT_QUOTA_OPEN_FORMS": "16"}) as server,
        partner_of(server.url, token(claims(), SECRET)) as partner,
        ThreadPoolExecutor(8) as pool,
    ):

        def ask(body=body):
            return partner.put(f"/sales/{sale}/evidences", json=body)

        assert [ask().status_code for _ in range(15)] == [200] * 15
        slowly()
        assert Counter(answer.status_code for answer in pool.map(lambda _: ask(), range(8))) == {200: 1, 429: 7}
        assert len(service.rows(evidences, sale_id=sale)) == 16
        refused = ask()
        assert is_too_many(refused)
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


def test_a_crowd_of_callers_forgets_the_quietest_first(monkeypatch):
    monkeypatch.setattr(access, "CALLERS_KEPT", 100)
    limits = RateLimits(Quotas(requests=2))
    assert [bool(limits.request("loud")) for _ in range(4)] == [False, False, True, True]
    for number in range(1000):
        limits.request(f"somebody {number}")
        assert limits.request("loud") > 0
