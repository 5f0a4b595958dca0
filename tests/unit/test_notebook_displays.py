"""Displays of notebooks are readable as HTML and as text, and harmless with any data."""

from toolkit.kit.shown import figures, table
from toolkit.kit.spoken import set_language


def test_displays_speak_the_language_of_the_environment_and_leave_data_alone():
    set_language({"TOOLKIT_LANGUAGE": "pt-BR"})
    facts = figures("Sales", {"rejected": 1200}, "Nothing was issued. Correct the rows below and run again.")
    rows = table("Why rows were rejected", ["line", "field"], [(2, "rejected")], total=1000)
    assert facts.text == "Vendas: 1.200 rejeitadas\nNada foi emitido. Corrija as linhas abaixo e execute de novo."
    assert "Nada foi emitido." in facts.html
    assert rows.text.splitlines()[1:4] == [
        "Por que linhas foram rejeitadas (1.000)",
        "  linha  campo",
        "      2  rejected",
    ]


def test_a_table_is_shown_whole_and_holds_nothing_but_text():
    long = f"<script>alert(1)</script>{'x' * 80}"
    markup = table("<i>", ["<b>"], [(long,)] * 56).html
    assert "&lt;i&gt; (56)" in markup
    assert markup.count(f"&lt;script&gt;alert(1)&lt;/script&gt;{'x' * 80}") == 56
    assert not any(f"<{tag}" in markup for tag in ("script", "i>", "b>"))
    assert table("Waivers", ["reason", "owner"], []).text == "\nWaivers: none"
