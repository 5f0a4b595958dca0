"""Displays of notebooks are readable as HTML and as text, and harmless with any data."""

import re

from toolkit.kit.spoken import speak_as
from toolkit.notebooks.display import Bars, Colour, Fact, FactTable, Grid

COUNTS = {"A": {"fine": 30, "bad": 10}, "<b>&": {"fine": 4}, "none": {}}


def test_bars_are_as_long_as_their_counts_and_say_them():
    markup = Bars("Sales", COUNTS, {"fine": Colour.GOOD, "bad": Colour.BAD}).bundle()["text/html"]
    assert re.findall(r"width:([\d.]+)%;background-color", markup) == ["75.00", "25.00", "10.00"]
    assert "table-layout:auto" in markup  # where columns are fixed, the names are not seen
    assert re.findall(r"text-align:center\">(\S+?)</div>", markup) == ["30", "10", "4"]
    assert re.findall(r"padding:2px 0 2px 8px\">(\d+)</td>", markup) == ["40", "4", "0"]


def test_bars_escape_names_and_need_no_style_sheet_or_script():
    bundle = Bars("<i>Sales</i>", COUNTS, {"fine": Colour.GOOD, "<u>": Colour.BAD}).bundle()
    assert set(bundle) == {"text/html", "text/plain"}
    assert not re.search(r"<(b|i|u|script|style|svg)\b", bundle["text/html"])


def test_the_most_frequent_come_first_and_the_others_together():
    counts = {f"reason {number}": 100 - number for number in range(15)}
    ranked = Bars.ranked("Why", counts, Colour.BAD)
    assert list(ranked.counts)[-2:] == ["reason 11", "all others"]
    assert ranked.counts["all others"][""] == 88 + 87 + 86


def test_displays_speak_the_language_of_the_environment_and_leave_data_alone():
    speak_as({"TOOLKIT_LANGUAGE": "pt-BR"})
    facts = FactTable("Sales", [Fact("rejected", 1200)], "No row was rejected.").bundle()
    grid = Grid("Why rows were rejected", ["line", "field"], [(2, "rejected")], total=1000).bundle()
    assert facts["text/plain"] == "Vendas: rejeitadas 1.200"
    assert "Nenhuma linha foi rejeitada." in facts["text/html"]
    assert grid["text/plain"] == "Por que linhas foram rejeitadas\nlinha\tcampo\n2\trejected"
    assert "As primeiras 1 linhas de 1.000." in grid["text/html"]


def test_a_table_without_rows_says_so_in_its_line():
    assert Grid("Waivers", ["reason", "owner"], []).bundle()["text/plain"] == "Waivers: none"


def test_a_table_can_be_sorted_and_filtered_and_holds_nothing_but_text():
    markup = Grid("<i>", ["<b>"], [("<script>alert(1)</script>",)] * 6).bundle()["text/html"]
    assert markup.count("<script>") == 1
    assert "heading.addEventListener" in markup
    assert "&lt;script&gt;alert(1)" in markup
