"""Quotas: 429 with ``Retry-After``."""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest

from tests.contract.conftest import partner_of
from tests.support.crafted_tokens import claims, token
from tests.support.raw_http import in_process
from tests.support.request_bodies import UPLOAD, changed
from tests.support.served_process import SECRET
from toolkit.database.tables import evidences
from toolkit.http import access
from toolkit.http.access import RateLimits
from toolkit.settings import Quotas


def is_too_many(answer):
    assert answer.status_code == 429, answer.text
    assert answer.json() == {"message": "Too many requests; try again later", "code": 429}
    return int(answer.headers["retry-after"]) > 0


def get(url, sent, **headers):
    with partner_of(url, sent) as client:
        return client.get("/nothing", headers=headers)


def test_requests_of_a_subject_are_counted(environ):
    """One a minute, as a busy machine may take seconds for a request."""
    mine, theirs = (token(claims(sub=f"crm-{uuid4()}"), SECRET) for _ in range(2))
    with in_process({**environ, "TOOLKIT_QUOTA_REQUESTS": "1"}) as server:
        assert get(server.url, mine).status_code == 404
        assert is_too_many(get(server.url, mine))
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
