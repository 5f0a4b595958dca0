"""One running server for all contract tests of a process, and a partner that talks to it."""

from datetime import UTC, datetime, timedelta
from functools import partial
from types import SimpleNamespace

import httpx
import pytest

from tests.conftest import fresh_bucket, fresh_database
from tests.support.served_process import SECRET, serving
from tests.support.uploaded_sales import add_sale
from tests.support.waiting import PATIENCE, wait_until
from toolkit.database.connection import Database
from toolkit.http import tokens
from toolkit.kit.connection import Kit
from toolkit.settings import Settings

SUBJECT = "partner-a"

PLENTY = {f"TOOLKIT_QUOTA_{name}": "1000000" for name in ("REQUESTS", "WRONG_TOKENS", "OPEN_FORMS")}
"""Quotas that tests of something else do not reach."""


def issue(environ, subject=SUBJECT, **named):
    """A token of an hour, for a partner or for scopes where they are named."""
    settings = Settings.from_environment(environ)
    return tokens.issue(settings, subject, timedelta(hours=1), datetime.now(UTC), **named).text


def partner_of(url, token, **options):
    headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
    return httpx.Client(base_url=url, headers=headers, trust_env=False, timeout=PATIENCE, **options)


@pytest.fixture(scope="session")
def environ(home, server, s3, tmp_path_factory):
    """A database and a bucket of these tests' own, and a key for tokens."""
    with fresh_database(server) as database:
        yield {
            **fresh_bucket(home, s3),
            "DATABASE_URL": database.engine.url.render_as_string(hide_password=False),
            "TOOLKIT_HOME": str(tmp_path_factory.mktemp("home")),
            "TOOLKIT_AUDITS": str(tmp_path_factory.mktemp("audits")),
            "TOOLKIT_JWT_SECRET": SECRET,
            **PLENTY,
        }


@pytest.fixture(scope="session")
def service(environ):
    """A running server with the services behind it, and what adds a sale."""
    with Database(environ["DATABASE_URL"]) as database, serving(environ) as running:
        # Until the revocations are read once, which a busy machine may do too late, it asks to come back.
        with partner_of(running.url, issue(environ)) as partner:
            wait_until(lambda: partner.get("/nothing").status_code == 404)
        sale = partial(add_sale, database, created_at=datetime.now(UTC))
        yield SimpleNamespace(server=running, environ=environ, database=database, sale=sale)


@pytest.fixture(scope="session")
def audited(environ, service):
    """The server, after an audit of what is there."""
    service.sale("V-AUDITED")
    with Kit(environ) as kit:
        kit.audit()
    return service


@pytest.fixture(scope="session")
def partner(service):
    """A partner's software with a valid token."""
    with partner_of(service.server.url, issue(service.environ)) as client:
        yield client


@pytest.fixture(scope="session")
def stranger(service):
    """Somebody without a token."""
    with partner_of(service.server.url, None) as client:
        yield client
