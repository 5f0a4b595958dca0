"""The threads of the HTTP interface."""

import asyncio
from types import SimpleNamespace

import pytest

from toolkit.errors import FindingNotFound, SaleNotFound
from toolkit.http import backend


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
