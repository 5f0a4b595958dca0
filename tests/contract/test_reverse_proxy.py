"""The packaged nginx.conf, tried on a real nginx with TLS."""

import shutil
import ssl
from importlib.resources import files

import pytest

from tests.contract.conftest import issue, partner_of
from tests.support.crafted_keys import made_certificate
from tests.support.request_bodies import CLIENT
from tests.support.served_process import serving
from tests.support.waiting import free_port, listens, started

NAME = "sales.example.com"

pytestmark = pytest.mark.skipif(shutil.which("nginx") is None, reason="needs nginx")


@pytest.fixture(scope="module")
def proxy(environ, tmp_path_factory):
    """An nginx with the packaged file in front of a server: its port, and a context that trusts it."""
    folder, port = tmp_path_factory.mktemp("nginx"), free_port()
    certificate = made_certificate(folder, NAME)
    packaged = (files("toolkit.http") / "nginx.conf").read_text("utf-8")
    limited = {**environ, "TOOLKIT_TRUSTED_PROXIES": "127.0.0.1", "TOOLKIT_QUOTA_WRONG_TOKENS": "9"}
    with serving(limited) as server:
        for marked, here in {
            "127.0.0.1:8000": f"127.0.0.1:{server.port}",
            "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
            "/etc/nginx/tls/fullchain.pem": str(certificate),
            "/etc/nginx/tls/privkey.pem": str(certificate),
        }.items():
            assert marked in packaged
            packaged = packaged.replace(marked, here)
        main = folder / "nginx.conf"
        temporary = "".join(
            f"{kind}_temp_path {folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        main.write_text(
            f"daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;\n"
            f"events {{}} http {{ {temporary} {packaged} }}\n"
        )
        log = folder / "error.log"
        with started(["nginx", "-c", main, "-e", log], lambda: listens(port), log=log):
            yield port, ssl.create_default_context(cafile=certificate)


@pytest.fixture
def client(proxy, environ):
    port, context = proxy
    with partner_of(f"https://127.0.0.1:{port}", issue(environ), verify=context) as one:
        one.headers["Host"] = NAME
        yield one


def test_a_client_is_registered_through_tls(client):
    answer = client.post("/clients", json=CLIENT)

    assert answer.status_code == 200
    assert set(answer.json()) == {"message", "clientId", "addressId"}
    assert answer.headers["strict-transport-security"]
    assert answer.headers["x-request-id"]
    assert "nginx/" not in answer.headers["server"]


def test_errors_of_the_service_come_through_as_they_are(client):
    assert client.post("/clients", json={}).json()["code"] == 400
    assert client.get("/nothing").json() == {"message": "Not found", "code": 404}


def test_a_large_body_is_refused_by_the_proxy(client):
    assert client.post("/clients", content=b" " * 70_000).status_code == 413


def test_an_address_that_a_caller_made_up_ends_at_the_proxy(client):
    """Whoever guesses tokens is counted under the address that it has."""
    made_up = ({"Authorization": "x", "X-Forwarded-For": f"192.0.2.{number}"} for number in range(20))
    assert 429 in {client.get("/nothing", headers=each).status_code for each in made_up}
