"""Displays of notebooks are readable as HTML and as text, and harmless with any data."""

import re

from toolkit.kit.spoken import set_language
from toolkit.notebooks.display import Colour, Fact, bars, figures, table

COUNTS = {"A": {"fine": 30, "bad": 10}, "<b>&": {"fine": 4}, "none": {}}


def test_bars_are_as_long_as_their_counts_and_say_them():
    markup = bars("<i>Sales</i>", COUNTS, {"fine": Colour.GOOD, "bad": Colour.BAD})["text/html"]
    assert re.findall(r"width:([\d.]+)%;background-color", markup) == ["75.00", "25.00", "10.00"]
    assert "table-layout:auto" in markup  # where columns are fixed, the names are not seen
    assert re.findall(r"text-align:center\">(\S+?)</div>", markup) == ["30", "10", "4"]
    assert re.findall(r"padding:2px 0 2px 8px\">(\d+)</td>", markup) == ["40", "4", "0"]
    assert not re.search(r"<(b|i|script|style|svg)\b", markup)


def test_displays_speak_the_language_of_the_environment_and_leave_data_alone():
    set_language({"TOOLKIT_LANGUAGE": "pt-BR"})
    facts = figures("Sales", [Fact("rejected", 1200)], "No row was rejected.")
    rows = table("Why rows were rejected", ["line", "field"], [(2, "rejected")], total=1000)
    assert facts["text/plain"] == "Vendas: rejeitadas 1.200"
    assert "Nenhuma linha foi rejeitada." in facts["text/html"]
    assert rows["text/plain"] == "Por que linhas foram rejeitadas (1 / 1.000)\nlinha\tcampo\n2\trejected"


def test_a_table_prints_whole_says_how_many_rows_it_has_and_holds_nothing_but_text():
    markup = table("<i>", ["<b>"], [("<script>alert(1)</script>",)] * 56)["text/html"]
    assert "&lt;i&gt; (56)" in markup
    assert re.search(r"@media print\{\.(\S+)\{max-height:none!important\}\}.*class=\"\1\"", markup)
    assert "<script>" not in markup
    assert markup.count("&lt;script&gt;alert(1)") == 56
    assert table("Waivers", ["reason", "owner"], [])["text/plain"] == "Waivers: none"
