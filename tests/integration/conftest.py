"""Servers that only some of the integration tests need."""

from __future__ import annotations

import os

import pytest

from tests import gateway
from tests.gateway import Gateway


@pytest.fixture(scope="session")
def object_gateway(pytestconfig: pytest.Config) -> Gateway:
    """The RADOS Gateway of this run; a test that asks for it is skipped where there is none."""
    reason = gateway.reason_without()
    if reason is not None:
        pytest.skip(reason)
    return gateway.find(os.getppid() if hasattr(pytestconfig, "workerinput") else os.getpid())
