"""Displays of notebooks are readable as HTML and as text, and harmless with any data."""

import re

from toolkit.entrypoints.notebooks.display import BAD, GOOD, Bars

COUNTS = {"A": {"fine": 30, "bad": 10}, "<b>&": {"fine": 4}, "none": {}}


def test_bars_are_as_long_as_their_counts_and_say_them():
    markup = Bars("Sales", COUNTS, {"fine": GOOD, "bad": BAD}).bundle()[0]["text/html"]
    assert re.findall(r"width:([\d.]+)%;background-color", markup) == ["75.00", "25.00", "10.00"]
    assert re.findall(r"text-align:center\">(\S+?)</div>", markup) == ["30", "10", "4"]
    assert re.findall(r"padding:2px 0 2px 8px\">(\d+)</td>", markup) == ["40", "4", "0"]


def test_bars_escape_names_and_need_no_style_sheet_or_script():
    bundle = Bars("<i>Sales</i>", COUNTS, {"fine": GOOD, "<u>": BAD}).bundle()[0]
    assert set(bundle) == {"text/html", "text/plain"}
    assert not re.search(r"<(b|i|u|script|style|svg)\b", bundle["text/html"])


def test_the_most_frequent_come_first_and_the_others_together():
    counts = {f"reason {number}": 100 - number for number in range(15)}
    ranked = Bars.ranked("Why", counts, BAD)
    assert list(ranked.counts)[-2:] == ["reason 11", "all others"]
    assert ranked.counts["all others"][""] == 88 + 87 + 86
