"""Only error texts of the toolkit stand in a failed notebook, wherever the project lies."""

import pytest

from toolkit.entrypoints.notebook_runs.failures import _OUR_PLACE


@pytest.mark.parametrize(
    ("place", "ours"),
    [
        ("Cell In[2], line 3", True),
        ("File ~/project/toolkit/storage/database.py:80, in _translated", True),
        ("File /srv/a folder/toolkit/toolkit/operations/register/sales_load.py:9, in load_sales", True),
        ("File /srv/.venv/lib/python3.11/site-packages/toolkit/errors.py:9, in x", True),
        ("File /srv/a folder/toolkit/.venv/lib/python3.11/site-packages/pandas/io/sql.py:2, in execute", False),
        ("File /usr/lib/python3.11/json/decoder.py:355, in raw_decode", False),
    ],
)
def test_a_place_is_ours_by_its_package(place: str, ours: bool) -> None:
    assert (_OUR_PLACE.match(place) is not None) is ours
