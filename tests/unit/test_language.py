"""Reports in Portuguese and English: complete, and chosen as people expect."""

import re
from dataclasses import replace
from datetime import date
from itertools import count

import pytest
from babel.messages.pofile import read_po
from pypdf import PdfReader

from tests.support.audit_results import Told, result_of, source
from tests.support.message_catalogue import PACKAGE, messages
from toolkit.contract.contents import IntegrityProblem
from toolkit.contract.fields import parse
from toolkit.contract.findings import file_finding
from toolkit.contract.resources import Address
from toolkit.errors import InvalidFields, InvalidInput, UnreadableFile
from toolkit.kit.shown import figures, table
from toolkit.kit.spoken import _, counted, format_error, set_language
from toolkit.language import language
from toolkit.message import Message
from toolkit.reports import FORMATS, write_report
from toolkit.reports.report import Report

PORTUGUESE = language("pt-BR")
DAY = date(2026, 11, 20)


def catalogue():
    with (PACKAGE / "language" / "translations" / "pt-BR.po").open("rb") as file:
        read = read_po(file, locale="pt_BR")
    return {
        each.id: tuple(each.string) if isinstance(each.string, list | tuple) else (each.string,)
        for each in read
        if each.id
    }


def test_every_message_is_translated_and_none_is_left_over():
    """A new text needs a line in toolkit/language/translations/pt-BR.po."""
    translated = {message for message, texts in catalogue().items() if all(texts)}
    assert messages() - translated == set()
    assert set(catalogue()) - messages() == set()


def test_a_translation_has_the_values_and_codes_of_its_message():
    named = re.compile(r"%\(\w+\)s|\{\w+\}|\b[A-Z]{2,}(?:_[A-Z]+)+\b")
    for message, texts in catalogue().items():
        places = count()
        told = message if isinstance(message, tuple) else (message,)
        keys = [re.sub(r"\{([:!][^}]*)?\}", lambda _, places=places: f"{{{next(places)}}}", key) for key in told]
        for text in (re.sub(r"\{(\d+)[:!][^}]*\}", r"{\1}", text) for text in texts):
            assert set(named.findall(text)) in [set(named.findall(key)) for key in keys], message


def test_a_portuguese_report_keeps_the_codes_and_the_formats_for_programs(tmp_path):
    times = "written at 2026-11-20T21:00:00+00:00, credentials ran out at 2026-11-01T02:00:00+00:00"
    late = file_finding(IntegrityProblem.WRITTEN_LATE, ("a/b",), (), ("S-1",), times)
    result = result_of(
        [Told("S-1", "POV! DC~"), Told("S-2", "KYC POV")],
        given_source=replace(source(), database="embedded PostgreSQL"),
        file_findings=[late],
    )
    write_report(Report(result, formats=[*FORMATS], language=PORTUGUESE), tmp_path / "pt")
    write_report(Report(result, formats=["csv", "json"]), tmp_path / "en")
    for name in ("missing-evidence.csv", "missing-evidence.json"):
        assert (tmp_path / "pt" / name).read_bytes() == (tmp_path / "en" / name).read_bytes()
    page = (tmp_path / "pt" / "missing-evidence.html").read_text(encoding="utf-8")
    assert '<html lang="pt-BR">' in page
    times = "gravado em 20/11/2026, 18:00 (UTC-03:00), credenciais vencidas em 31/10/2026, 23:00 (UTC-03:00)"
    for told in ("DOC_<wbr>CONTRATANTE", "PostgreSQL embutido", times):
        assert told in page
    pages = PdfReader(tmp_path / "pt" / "missing-evidence.pdf").pages
    assert f"página 1 de {len(pages)}" in pages[0].extract_text()


def test_a_sentence_is_told_with_its_values_in_the_form_of_the_language():
    empty = UnreadableFile("{}: the file is empty.", "a.xlsx")
    assert PORTUGUESE.tell(empty.args[0]) == "a.xlsx: o arquivo está vazio."
    assert PORTUGUESE.tell(Message("  {}: the file is empty.", "a.xlsx")) == "  a.xlsx: o arquivo está vazio."
    more = Message("... and {:,} more; --json lists all of them", 1200)
    assert PORTUGUESE.tell(more) == "... e mais 1.200; --json lista tudo"
    for unknown in ("a.csv: 1,200 rows: none of this is known", ""):
        assert PORTUGUESE.tell(unknown) == unknown
    with pytest.raises(InvalidFields) as refused:
        parse(Address, {"neighborhood": "X" * 300})
    assert "neighborhood: Deve ter no máximo 255 caracteres; " in PORTUGUESE.tell(refused.value.args[0])


@pytest.mark.parametrize(
    ("zone", "told"), [("Asia/Tokyo", "21 Nov 2026, 03:00"), ("no/zone", "20 Nov 2026, 15:00")]
)
def test_an_error_tells_moments_in_the_zone_that_is_set(zone, told):
    set_language({"TOOLKIT_TIMEZONE": zone})
    before = InvalidInput("The record was withdrawn before, at {}.", "2026-11-20T18:00:00+00:00")
    assert f"at {told} (UTC" in format_error(before)


def test_counts_have_their_plural_and_a_message_of_another_language_stays_as_it_is():
    set_language({})
    assert [counted(each, "sale") for each in (0, 1, 1200)] == ["0 sales", "1 sale", "1,200 sales"]
    assert figures("Erased", {"clients": 1, "sales": 2, "kept": 1}).text == "Erased: 1 client, 2 sales, 1 kept"
    days = table("Waivers", ["end"], [(DAY,)])
    assert (days.text[-11:], f'data-value="{DAY.toordinal()}"' in days.html) == ("20 Nov 2026", True)
    set_language({"TOOLKIT_LANGUAGE": "pt-BR"})
    assert [counted(each, "sale") for each in (1, 1200)] == ["1 venda", "1.200 vendas"]
    assert table("Waivers", ["end"], [(DAY,)]).text.endswith("20/11/2026")
    erased = figures("Erased", {"clients": 1, "sales": 2, "objects": 1, "kept": 2})
    assert erased.text == "Eliminado: 1 cliente, 2 vendas, 1 objeto, 2 mantidas"
    set_language({"TOOLKIT_LANGUAGE": "xx"})
    assert _(Message("{}: the file is empty.", "a.xlsx")) == "a.xlsx: the file is empty."
