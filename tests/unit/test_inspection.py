"""The inspection of all bytes finds damaged and disguised files."""

from __future__ import annotations

import io
import signal
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pypdf import PdfWriter
from pypdf.generic import (
    DecodedStreamObject,
    DictionaryObject,
    NameObject,
    StreamObject,
)

from tests.support.evidence_files import (
    RATE,
    encoded,
    mp4,
    pdf,
    telephone_wav,
    tone,
)
from toolkit.contract.contents import ActivePart, ContentProblem, Depth
from toolkit.contract.evidence import FileKind
from toolkit.evidence.inspection import SECONDS, Inspector, inspect_file
from toolkit.evidence.kinds import Inspected, readers_of

DAMAGED, SILENT = ContentProblem.DAMAGED, ContentProblem.SILENT
MOMENTS = np.arange(2 * RATE) / RATE
TONE = 0.3 * np.sin(2 * np.pi * 440 * MOMENTS)
MATROSKA = b"\x1a\x45\xdf\xa3\x9f\x86\x86A_OPUS" + bytes(100)
WMA = bytes.fromhex("3026b2758e66cf11a6d900aa0062ce6c409e69f84d5bcf11a8fd00805f5c442b") + bytes(100)


def wav(samples: np.ndarray[Any, Any], rate: int = RATE, **options: str) -> bytes:
    """A recording whose samples may be anything that a 32-bit float is."""
    return encoded(samples, "FLOAT", rate, **options)


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


def nested(depth: int) -> bytes:
    boxes = b"".join((8 * left).to_bytes(4, "big") + b"moov" for left in range(depth, 0, -1))
    return b"\0\0\0\x14ftypM4A \0\0\0\0M4A " + boxes


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param(tone(container="WAV", loudness=0.005), None, id="a whisper 46 dB down"),
        pytest.param(wav(np.where(MOMENTS < 0.1, TONE, 0)), SILENT, id="a tenth of a second of sound"),
        pytest.param(wav(np.where(MOMENTS < 0.3, TONE, 0)), None, id="one word"),
        pytest.param(wav(np.where(MOMENTS == 0.5, np.nan, TONE)), None, id="a sample that is no number"),
        pytest.param(wav(np.where(MOMENTS < 1, np.inf, -np.inf)), SILENT, id="nothing but infinity"),
        pytest.param(wav(np.stack([MOMENTS * 0 + 0.5, MOMENTS * 0 - 0.5], axis=1)), SILENT, id="two levels"),
        pytest.param(wav(TONE, rf64="always"), None, id="RF64"),
        pytest.param(wav(TONE, rf64="always")[:40_000], DAMAGED, id="half an RF64"),
        pytest.param(telephone_wav(0.5), ContentProblem.TOO_SHORT, id="half a second of G.729"),
        pytest.param(mp4(), DAMAGED, id="MP4 without samples"),
        pytest.param(MATROSKA, DAMAGED, id="Matroska without anything in it"),
        pytest.param(WMA, DAMAGED, id="WMA without anything in it"),
        pytest.param(nested(3000), DAMAGED, id="MP4 of 3,000 boxes in each other"),
    ],
)
def test_a_recording_at_the_edge(content, problem, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(content)
    found = inspect_file(path)
    assert (found.kind, found.problem) == (FileKind.AUDIO, problem)


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
