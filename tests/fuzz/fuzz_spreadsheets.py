"""Spreadsheets: each file is read, or refused by its name, within the limits that are stated."""

from __future__ import annotations

import io
import random
import resource
import tempfile
import time
import zipfile
from collections import Counter
from pathlib import Path

import xlsxwriter

from tests.fuzz.mutations import mutated
from toolkit.errors import UnreadableFile
from toolkit.intake.headings import Headings
from toolkit.intake.tables import read_table
from toolkit.intake.workbooks import MEMORY_BYTES, SECONDS

OWN_BYTES = 1024**3
"""Memory that this process may gain, whatever it reads."""

TEXT = 'saleId;cidade;nome\n1;São Paulo;"Ana ""A"" Souza"\n2;Belém;João\n'
WORDS = [
    *(b'"', b'""', b";", b",", b"\t", b"\n", b"\r", b"\r\n", b"\0", b"sep=,\n", b"\xff\xfe", b"\xef\xbb\xbf"),
    *(b";" * 20_000, b'";"' * 5_000, b'"' + b"x\n" * 5_000, b"\xc3", b"\xe2\x80\xae", b"=1+1", b"PK\x03\x04"),
]
TAGS = [
    *(b'<row r="1048576">', b'<row r="4294967295">', b'<c r="XFD1048576" t="s"><v>0</v></c>', b"<c/>" * 9_000),
    *(b't="e"', b't="inlineStr"', b't="b"', b't="d"', b"<v>1e308</v>", b"<v>-1</v>", b"<v>99999999999</v>"),
    *(b"</sheetData>", b"<x:c", b"&#0;", b"&amp;", b"<!--", b"]]>", b" " * 100_000, b'r="A0"', b'ref="A1:XFD9"'),
]


def run(chance: random.Random, until: float) -> Counter[str]:
    """Read texts and workbooks, each changed here and there."""
    counts: Counter[str] = Counter()
    good = _workbook()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < until:
            as_text = chance.random() < 0.8
            path = Path(folder) / ("a.csv" if as_text else "a.xlsx")
            path.write_bytes(_text(chance) if as_text else _changed(chance, good))
            began = time.monotonic()
            try:
                read_table(path, Headings(()))
            except UnreadableFile as error:
                refused: str | None = str(error)
            else:
                refused = None
            assert refused is None or path.name in refused or "delimiter" in refused
            assert time.monotonic() - began < SECONDS
            kind = "texts" if as_text else "workbooks"
            counts[f"{kind} {'read' if refused is None else 'refused'}"] += 1
    own = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    assert own < OWN_BYTES, own
    assert child < MEMORY_BYTES + OWN_BYTES, child  # a child begins with the peak of its parent
    return counts


def _text(chance: random.Random) -> bytes:
    encoding = chance.choice(["utf-8", "utf-8-sig", "cp1252", "utf-16"])
    return mutated(chance, TEXT.replace(";", chance.choice(";,\t|")).encode(encoding), WORDS)


def _workbook() -> dict[str, bytes]:
    buffer = io.BytesIO()
    with xlsxwriter.Workbook(buffer) as book:
        sheet = book.add_worksheet("vendas")
        for number, row in enumerate(
            (["saleId", "cidade", "dia"], ["1", "Belém", 45_000], [2, "São Paulo", 1.5], [None, "x", True])
        ):
            sheet.write_row(number, 0, row)
    with zipfile.ZipFile(buffer) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _changed(chance: random.Random, parts: dict[str, bytes]) -> bytes:
    """The workbook with one part changed inside, or with its packed bytes changed."""
    parts = dict(parts)
    name = chance.choice(["xl/worksheets/sheet1.xml"] * 6 + ["xl/sharedStrings.xml", "xl/styles.xml", *parts])
    parts[name] = mutated(chance, parts[name], TAGS)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for each, content in parts.items():
            archive.writestr(each, content)
    return mutated(chance, buffer.getvalue(), TAGS) if chance.random() < 0.1 else buffer.getvalue()
