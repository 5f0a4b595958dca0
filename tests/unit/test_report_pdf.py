"""The PDF of a report: what the standards demand, and any text that a sale holds."""

import re
from dataclasses import replace
from hashlib import sha256

import pandas as pd
import pytest
from pypdf import PdfReader

from tests.support.audit_results import AS_OF, WITHDRAWN, Told, result_of, written
from toolkit.reports import pdf
from toolkit.reports.notices import headline, notices


@pytest.mark.parametrize("told", [[Told("fine", "KYC")], []], ids=["no open sale", "no sale"])
def test_a_result_without_open_sales_is_a_pdf_too(told, tmp_path):
    assert len(PdfReader(written(result_of(told), tmp_path, "pdf") / "missing-evidence.pdf").pages) > 0


def test_a_pdf_tells_all_that_is_filed_and_names_the_json_on_each_page(result, tmp_path):
    out = written(result, tmp_path, "pdf", "json")
    document = PdfReader(out / "missing-evidence.pdf")
    metadata = document.xmp_metadata.stream.get_data().decode() if document.xmp_metadata else ""
    assert re.search(r"pdfaid:part>2<.*pdfaid:conformance>A<.*pdfuaid:part>1<", metadata, re.DOTALL)
    assert document.root_object["/MarkInfo"]["/Marked"]
    pages = [page.extract_text() for page in document.pages]
    for number, text in enumerate(pages, start=1):
        assert f"page {number} of {len(pages)}" in text
        assert sha256((out / "missing-evidence.json").read_bytes()).hexdigest() in text
        assert "5ea1" * 16 in text
    told = " ".join(" ".join(pages).split())
    words = ("same file for several sales", "VND-6", "Where the numbers come from")
    for text in (headline(result), *notices(result), *words):
        assert text in told


def test_the_people_of_a_withdrawal_stand_apart(tmp_path):
    asking, approving = "firstanalyst@utility", "complianceofficer@company"
    people = {"withdrawnBy": asking, "approvedBy": approving}
    row = dict.fromkeys(WITHDRAWN, "x") | people | {"withdrawnAt": pd.Timestamp(AS_OF)}
    made = replace(result_of([Told("S-1")]), withdrawals=pd.DataFrame([row]))
    runs = []

    def noted(text, place, _, __, size):
        runs.append((text.replace("\u200b", "").strip(), place[4], size))

    for page in PdfReader(written(made, tmp_path, "pdf") / "missing-evidence.pdf").pages:
        page.extract_text(visitor_text=noted)
    left = [(text, x, size) for text, x, size in runs if len(text) > 2 and text in asking]
    right = min(x for text, x, _ in runs if len(text) > 2 and text in approving)
    assert "".join(text for text, *_ in left) == asking
    assert [text for text, x, size in left if x < right < x + len(text) * size / 2] == []


def test_a_pdf_takes_any_text_and_shows_a_box_for_what_its_fonts_lack(tmp_path):
    texts = ["R$ 5 & $x$", "\\frac{1}{2} #eval(1)", "😀 漢字", "a\nb\x01", "x" * 100, "*a* _b_ <c> @d"]
    told = [
        Told(f"{text} {place}", partner=text, group=text, days=99 - place) for place in range(12) for text in texts
    ]
    pages = PdfReader(written(result_of(told), tmp_path, "pdf") / "missing-evidence.pdf").pages
    assert len(pages) > 3
    told_text = "".join(page.extract_text() for page in pages)
    for text in ("R$ 5 & $x$", "\\frac{1}{2} #eval(1)", "□ □□", "*a* _b_ <c> @d"):
        assert text in told_text.replace("​", "")


def test_every_character_that_a_pdf_lets_through_has_a_glyph(tmp_path):
    allowed = [chr(code) for code in range(0x20, 0x3000) if not pdf._UNPRINTABLE.match(chr(code))]
    written(result_of([Told("".join(allowed))]), tmp_path, "pdf")
