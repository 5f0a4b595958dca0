"""The inspection of all bytes finds damaged and disguised files."""

from __future__ import annotations

import io
import signal
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from pypdf import PdfWriter
from pypdf.generic import (
    DecodedStreamObject,
    DictionaryObject,
    NameObject,
    StreamObject,
)

from tests.support.evidence_files import (
    pdf,
    tone,
)
from toolkit.contract.contents import ActivePart, ContentProblem, Depth
from toolkit.contract.evidence import FileKind
from toolkit.evidence.inspection import SECONDS, Inspector, inspect_file
from toolkit.evidence.kinds import Inspected, readers_of

DAMAGED, SILENT = ContentProblem.DAMAGED, ContentProblem.SILENT


def bomb() -> bytes:
    packed = StreamObject()
    packed._data = zlib.compress(bytes(200_000_000), 1)
    packed[NameObject("/Filter")] = NameObject("/FlateDecode")

    def change(writer: PdfWriter) -> None:
        writer.pages[0][NameObject("/Contents")] = writer._add_object(packed)

    return written(change)


def written(change: Callable[[PdfWriter], object]) -> bytes:
    writer = PdfWriter()
    writer.add_blank_page(width=595, height=842)
    change(writer)
    buffer = io.BytesIO()
    writer.write(buffer)
    return buffer.getvalue()


OF_PDF, OF_MP3 = ({"readers": readers_of(kind)} for kind in (FileKind.PDF, FileKind.AUDIO))
SLOW_PDF = Inspected("application/pdf", active_parts=(ActivePart.UNCLEAR,), depth=Depth.PART, **OF_PDF)


@pytest.mark.parametrize(
    ("fate", "body", "told"),
    [
        pytest.param(signal.SIGSEGV, pdf(), Inspected("application/pdf", DAMAGED, **OF_PDF), id="crash"),
        pytest.param(signal.SIGSTOP, pdf(), SLOW_PDF, id="a PDF that takes too long"),
        pytest.param(
            signal.SIGSTOP,
            tone(2),
            Inspected("audio/mpeg", DAMAGED, **OF_MP3),
            id="a recording that takes too long",
        ),
    ],
)
def test_the_inspector_outlives_a_file_that_its_process_does_not(fate, body, told, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(body)
    with Inspector() as inspector, path.open("rb") as file:
        before = inspector.inspect(file)
        assert inspector._process is not None
        inspector._process.send_signal(fate)
        inspector._seconds = 0.5
        assert inspector.inspect(file) == told
        inspector._seconds = SECONDS
        assert inspector.inspect(file) == before


def test_the_inspector_sees_nothing_of_our_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    path = tmp_path / "file"
    path.write_bytes(pdf())
    with Inspector() as inspector, path.open("rb") as file:
        inspector.inspect(file)
        assert inspector._process is not None
        environ = Path(f"/proc/{inspector._process.pid}/environ").read_bytes()
    assert b"AWS" not in environ


def tangled(writer: PdfWriter) -> None:
    """A page with a form that names itself 300 times: read to a depth of three, that is 27 million forms."""
    form = DecodedStreamObject()
    form.set_data(b"/I0 Do")
    form.update({NameObject("/Subtype"): NameObject("/Form")})
    there = writer._add_object(form)
    objects = DictionaryObject({NameObject(f"/I{number}"): there for number in range(300)})
    named = {NameObject("/Resources"): DictionaryObject({NameObject("/XObject"): objects})}
    form.update(named)
    writer.pages[0].update({NameObject("/Contents"): there, **named})


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(written(tangled), id="forms that name each other without end"),
        pytest.param(bomb(), id="a page that unpacks to 200 MB"),
    ],
)
def test_a_document_that_asks_for_too_much_is_read_in_time_and_memory(content, tmp_path):
    path = tmp_path / "a.pdf"
    path.write_bytes(content)
    found = inspect_file(path)
    assert (found.problem, found.active_parts) == (None, (ActivePart.BLANK,))
