"""The normal form of a file stays the same when tags, comments or bytes are added."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.evidence_files import pdf as blank_pdf
from tests.support.evidence_files import tone
from toolkit.evidence.inspection import inspect_file
from toolkit.samples.evidence_files import RECORDINGS, mp3, pdf

MP3, WAV, PDF = "audio/mpeg", "audio/wav", "application/pdf"
TAG = b"ID3\x04\x00\x00\x00\x00\x00\x0a" + bytes(10)


def form(folder: Path, content: bytes, media_type: str) -> str | None:
    (folder / "file").write_bytes(content)
    found = inspect_file(folder / "file")
    return found.normal_form


@pytest.mark.parametrize(
    ("media_type", "content", "around"),
    [
        (MP3, tone(), lambda content: TAG + content),
        (MP3, tone(), lambda content: content + b"x"),
        (MP3, tone(), lambda content: content + bytes(5000) + b"TAG" + bytes(125)),
        (WAV, tone(2.0, "WAV"), lambda content: content + b"x"),
        (PDF, pdf("a", ["b"]), lambda content: content + b"% a comment\n"),
        (PDF, pdf("a", ["b"]), lambda content: content.replace(b"Helvetica", b"Courier--")),
    ],
)
def test_what_is_put_around_makes_no_difference(media_type, content, around, tmp_path):
    assert callable(around)
    before = form(tmp_path, content, media_type)
    assert before is not None
    assert form(tmp_path, around(content), media_type) == before


def test_other_contents_have_another_form(tmp_path):
    forms = [
        form(tmp_path, tone(2.0), MP3),
        form(tmp_path, tone(2.1), MP3),
        form(tmp_path, tone(2.0, "WAV"), WAV),
        form(tmp_path, pdf("a", ["b"]), PDF),
        form(tmp_path, pdf("a", ["c"]), PDF),
        *(form(tmp_path, mp3(RECORDINGS["POV"][0], f"V-2026-{number:05}"), MP3) for number in range(60)),
    ]
    assert len(set(forms)) == len(forms)


def test_a_file_in_which_there_is_nothing_has_none(tmp_path):
    assert form(tmp_path, blank_pdf(operators=b""), PDF) is None
    assert form(tmp_path, b"ID3 and no more", MP3) is None
    assert form(tmp_path, b"%PDF-1.4 no more", PDF) is None
