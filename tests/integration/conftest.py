from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.homes import processes_of
from toolkit.storage import embedded


@pytest.fixture
def own_home() -> Iterator[Path]:
    """An empty ``TOOLKIT_HOME`` for one test; what runs in it ends with the test, and leaves nothing running."""
    around = Path(tempfile.mkdtemp(prefix="toolkit-home-", dir="/tmp"))
    around.chmod(0o755)
    home = around / "home"
    try:
        yield home
        embedded.stop(home)
        assert processes_of(home) == []
    finally:
        shutil.rmtree(around)


@pytest.fixture(scope="session")
def stopped_home() -> Iterator[Path]:
    """A home with a PostgreSQL that was made, started and stopped."""
    around = Path(tempfile.mkdtemp(prefix="toolkit-home-", dir="/tmp"))
    around.chmod(0o755)
    home = around / "home"
    try:
        embedded.database_url(home)
        embedded.stop(home)
        yield home
    finally:
        shutil.rmtree(around)


@pytest.fixture
def used_home(own_home: Path, stopped_home: Path) -> Path:
    """A home of one test in which PostgreSQL ran before, to save the time of making its data."""
    subprocess.run(["cp", "-a", stopped_home, own_home], check=True)
    return own_home
