"""The names that other packages keep to themselves and that the toolkit uses all the same.

Each of these packages has an upper bound in ``pyproject.toml``, raised when these tests pass with the new one.
"""

import inspect
import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from botocore.credentials import RefreshableCredentials
from ministack.core import iam_evaluator, persistence
from ministack.services import sts
from uvicorn.protocols.http import httptools_impl

from toolkit.entrypoints.http_api.connections import Connection

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
REQUIREMENTS = [
    *PROJECT["dependencies"],
    *(each for extra in PROJECT["optional-dependencies"].values() for each in extra),
]


@pytest.mark.parametrize("package", ["botocore", "ministack", "psycopg", "uvicorn"])
def test_a_package_whose_private_names_are_used_has_an_upper_bound(package):
    bounds = [each for each in REQUIREMENTS if each.startswith(package)]
    assert any("<" in each for each in bounds), f"{package} may change any day: give it an upper bound"


def test_uvicorn_still_calls_what_a_connection_overrides():
    protocol = httptools_impl.HttpToolsProtocol
    overridden = {
        name for name, value in vars(Connection).items() if inspect.isfunction(value) and hasattr(protocol, name)
    } - {"__init__"}
    assert overridden >= {
        "connection_made",
        "connection_lost",
        "data_received",
        "on_headers_complete",
        "on_message_complete",
        "on_response_complete",
        "send_400_response",
    }, "uvicorn renamed a method of HttpToolsProtocol: the limits in http_api.connections are gone"
    assert httptools_impl.STATUS_LINE[431].startswith(b"HTTP/1.1 431"), "uvicorn's STATUS_LINE changed"
    source = inspect.getsource(protocol)
    for name in ("self.transport", "self.loop", "self.cycle", "self.connections", "response_complete"):
        assert name in source, f"uvicorn's protocol has no {name} any more, which connections.py uses"


def test_ministack_still_asks_the_function_that_the_embedded_bucket_replaces():
    assert iam_evaluator._is_root_key("test"), (
        "ministack changed _is_root_key: are signatures checked for every key?"
    )
    callers = [name for name, value in vars(iam_evaluator).items() if inspect.isfunction(value)]
    asking = [name for name in callers if "_is_root_key(" in inspect.getsource(getattr(iam_evaluator, name))]
    assert set(asking) - {"_is_root_key"}, "ministack calls _is_root_key no more: the replacement has no effect"
    assert isinstance(sts._sessions, dict), (
        "ministack's sessions are kept elsewhere: they would not survive a restart"
    )
    assert callable(persistence.save_state), "ministack's save_state is gone"
    assert callable(persistence.load_state), "ministack's load_state is gone"


def test_botocore_still_tells_when_refreshed_credentials_expire():
    ends = datetime.now(UTC) + timedelta(hours=1)
    metadata = {"access_key": "a", "secret_key": "s", "token": "t", "expiry_time": ends.isoformat()}
    credentials = RefreshableCredentials.create_from_metadata(metadata, refresh_using=dict, method="test")
    told = getattr(credentials, "_expiry_time", None)
    assert told == ends, "botocore renamed _expiry_time: a form could outlive the session that signs it"
