"""Quotas: 429 with ``Retry-After``, shared by all servers with one home."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from tests.contract.bodies import UPLOAD, changed
from tests.contract.conftest import Service, partner_of
from tests.contract.crafted_tokens import claims, token
from tests.contract.server import SECRET
from tests.contract.sockets import in_process
from toolkit.entrypoints.http_api import quotas
from toolkit.entrypoints.http_api.quotas import SharedQuotas
from toolkit.settings import Settings
from toolkit.storage.embedded.home import make_once
from toolkit.storage.tables import evidences


@pytest.fixture
def alone(environ: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """A home of its own, in which nobody else is counted."""
    return {**environ, "TOOLKIT_HOME": str(tmp_path)}


@pytest.fixture(autouse=True)
def _time_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a few requests take the seconds in which a quota gives another one."""
    now = time.time()
    monkeypatch.setattr(quotas.time, "time", lambda: now)


def is_too_many(answer: httpx.Response) -> bool:
    assert answer.status_code == 429, answer.text
    assert answer.json() == {"message": "Too many requests; try again later", "code": 429}
    return int(answer.headers["retry-after"]) > 0


def get(url: str, sent: str | None, **headers: str) -> httpx.Response:
    with partner_of(url, sent) as client:
        return client.get("/nothing", headers=headers)


def test_requests_of_a_subject_are_counted_by_all_servers_together(alone: dict[str, str]) -> None:
    limited = {**alone, "TOOLKIT_QUOTA_REQUESTS": "6"}
    mine, theirs = (token(claims(sub=f"crm-{uuid4()}"), SECRET) for _ in range(2))
    with in_process(limited) as one, in_process(limited) as another:
        answers = [get(url, mine).status_code for _ in range(3) for url in (one.url, another.url)]
        assert answers == [404] * 6
        assert is_too_many(get(one.url, mine))
        assert is_too_many(get(another.url, mine))
        assert get(another.url, theirs).status_code == 404


def test_wrong_tokens_of_an_address_are_counted_and_valid_ones_still_taken(alone: dict[str, str]) -> None:
    limited = {**alone, "TOOLKIT_QUOTA_WRONG_TOKENS": "4", "TOOLKIT_TRUSTED_PROXIES": "127.0.0.1"}

    def wrong(url: str, forwarded: str, sent: str | None = "a.b.c") -> httpx.Response:
        return get(url, sent, **{"X-Forwarded-For": forwarded})

    with in_process(limited) as server:
        for place in range(4):
            assert wrong(server.url, f"10.0.0.{place}, 192.0.2.7").status_code == 401
        assert is_too_many(wrong(server.url, "192.0.2.7"))
        assert is_too_many(wrong(server.url, "192.0.2.7", None))
        assert wrong(server.url, "192.0.2.7", token(claims(), SECRET)).status_code == 404
        assert wrong(server.url, "192.0.2.8").status_code == 401
        for place in range(4):
            assert wrong(server.url, f"2001:db8::{place}").status_code == 401
        assert is_too_many(wrong(server.url, "2001:db8::ffff"))
        for place in range(4):
            assert wrong(server.url, f"::ffff:198.51.100.{place}").status_code == 401
        with partner_of(server.url, None) as client:  # a proxy that adds a line behind the caller's
            for place in range(5):
                lines = [("X-Forwarded-For", f"10.0.0.{place}"), ("X-Forwarded-For", "192.0.2.9")]
                answer = client.get("/nothing", headers=lines)
        assert is_too_many(answer)


def test_only_a_trusted_proxy_says_who_sends(alone: dict[str, str]) -> None:
    with in_process({**alone, "TOOLKIT_QUOTA_WRONG_TOKENS": "2"}) as server:
        answers = [
            get(server.url, None, **{"X-Forwarded-For": f"192.0.2.{place}"}).status_code for place in range(4)
        ]
    assert answers == [401, 401, 429, 429]


def test_a_sale_has_a_bounded_number_of_open_forms_of_a_type(alone: dict[str, str], service: Service) -> None:
    sale, body = service.sale(f"V-{uuid4()}"), changed(UPLOAD, "evidenceType", "KYC")
    with (
        in_process({**alone, "TOOLKIT_QUOTA_OPEN_FORMS": "12"}) as server,
        partner_of(server.url, token(claims(), SECRET)) as partner,
        ThreadPoolExecutor(8) as pool,
    ):

        def ask(body: dict[str, str] = body) -> httpx.Response:
            return partner.put(f"/sales/{sale}/evidences", json=body)

        assert Counter(answer.status_code for answer in pool.map(lambda _: ask(), range(24))) == {200: 12, 429: 12}
        assert len(service.rows(evidences, sale_id=sale)) == 12
        refused = ask()
        assert is_too_many(refused)
        assert 3000 < int(refused.headers["retry-after"]) <= 3600
        assert ask(UPLOAD).status_code == 200  # another type
        assert partner.put("/sales/unknown/evidences", json=body).status_code == 404


def shared(home: Path, requests: int) -> SharedQuotas:
    environ = {"TOOLKIT_HOME": str(home), "TOOLKIT_QUOTA_REQUESTS": str(requests)}
    return SharedQuotas.open(Settings.from_environment(environ))


def test_a_caller_has_a_minutes_worth_at_once_and_then_its_rate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1_800_000_000.0
    monkeypatch.setattr(quotas.time, "time", lambda: now)
    counting = shared(tmp_path, 60)

    assert [counting.request("a") for _ in range(60)] == [0.0] * 60
    assert counting.request("a") == pytest.approx(1)
    assert shared(tmp_path, 60).request("a") == pytest.approx(1)
    now += 2.5
    assert [counting.request("a") for _ in range(3)] == pytest.approx([0.0, 0.0, 0.5])
    now -= 86_400  # a clock that is set back locks nobody out for a day
    assert counting.request("a") == 0.0


def test_a_crowd_of_callers_costs_no_memory_and_forgets_the_quietest_first(tmp_path: Path) -> None:
    counting = shared(tmp_path, 2)
    assert [bool(counting.request("loud")) for _ in range(4)] == [False, False, True, True]
    for number in range(3000):
        counting.request(f"somebody {number}")

    assert counting.request("loud") > 0
    assert (tmp_path / quotas.FILE).stat().st_size < 300_000
    assert (tmp_path / quotas.FILE).stat().st_mode & 0o077 == 0


def test_a_file_that_is_made_once_is_whole_or_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        make_once(tmp_path / "file", "no bytes")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []
    for content in (b"first", b"second"):
        make_once(tmp_path / "file", content)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("file", b"first")]


def test_a_server_whose_home_cannot_be_written_counts_for_itself(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    counting = shared(tmp_path / "file" / "home", 1)

    assert counting.request("a") == 0.0
    assert counting.request("a") > 0
