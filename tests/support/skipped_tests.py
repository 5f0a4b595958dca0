"""``pytest --only-skipped``: the tests that the last run without it skipped, once what they need is there."""

from __future__ import annotations

from typing import Final

import pytest

OPTION: Final = "--only-skipped"
_KEPT: Final = "toolkit/skipped"


class SkippedTests:
    """A plugin that keeps the names of the tests that a run skipped, and runs those alone where it is asked to."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._cache = getattr(config, "cache", None)  # there is none with -p no:cacheprovider
        self._asked = bool(config.getoption(OPTION)) and self._cache is not None
        self._skipped: set[str] = set()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out what was not skipped."""
        if self._asked:
            kept = set(self._cache.get(_KEPT, []))
            items[:] = [item for item in items if item.nodeid in kept]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test that was skipped."""
        if report.skipped and not hasattr(report, "wasxfail"):
            self._skipped.add(report.nodeid)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Keep the names; workers of xdist see a part of them only. That nothing was skipped is no failure."""
        if self._asked and session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            session.exitstatus = pytest.ExitCode.OK
        if self._cache is not None and not self._asked and not hasattr(self._config, "workerinput"):
            self._cache.set(_KEPT, sorted(self._skipped))
