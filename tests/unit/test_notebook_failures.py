"""Only error texts of the toolkit stand in a failed notebook, wherever the project lies."""

import re

import pytest

from tests.support.message_catalogue import messages
from toolkit.language import LANGUAGES, language
from toolkit.notebooks.calls import _PARAMETERS, in_parameters
from toolkit.notebooks.running import _OUR_PLACE


@pytest.mark.parametrize(
    ("place", "ours"),
    [
        ("Cell In[2], line 3", True),
        ("File ~/project/toolkit/database/connection.py:80, in _translated", True),
        ("File /srv/a folder/toolkit/toolkit/intake/sales.py:9, in load_sales", True),
        ("File /srv/.venv/lib/python3.11/site-packages/toolkit/errors.py:9, in x", True),
        ("File /srv/a folder/toolkit/.venv/lib/python3.11/site-packages/pandas/io/sql.py:2, in execute", False),
        ("File /usr/lib/python3.11/json/decoder.py:355, in raw_decode", False),
    ],
)
def test_a_place_is_ours_by_its_package(place: str, ours: bool) -> None:
    assert (_OUR_PLACE.match(place) is not None) is ours


@pytest.mark.parametrize("code", LANGUAGES)
def test_advice_names_parameters_in_the_place_of_options(code: str) -> None:
    advice = [text for text in messages() if any(option in text for option in _PARAMETERS) and "\n" not in text]
    assert len(advice) > 5
    for text in advice:
        told = in_parameters(language(code).text(text))
        named = [option for option in re.findall("--[a-z-]+", told) if f"toolkit audit {option}" not in told]
        assert not set(named) & {option.partition(" ")[0] for option in _PARAMETERS}, told
