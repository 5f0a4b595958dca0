"""Contract, "Authentication": a valid bearer token before anything else, under each kind of key."""

from datetime import timedelta

import pytest

from tests.contract.conftest import partner_of
from tests.support.crafted_tokens import claims, token, unsigned
from tests.support.raw_http import in_process
from tests.support.request_bodies import CLIENT, UPLOAD
from tests.support.served_process import SECRET

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
