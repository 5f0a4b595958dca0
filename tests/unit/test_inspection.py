"""The inspection of all bytes finds damaged and disguised files."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.integration.evidence_bytes import JPEG, adts, amr, mp4, pdf, silence, telephone_wav, tone
from toolkit.domain.contents import ContentProblem
from toolkit.domain.evidence import FileKind
from toolkit.operations.verify.contents.inspection import Inspected, inspect_file
from toolkit.operations.verify.contents.inspector import SECONDS, Inspector

DAMAGED, ENCRYPTED = ContentProblem.DAMAGED, ContentProblem.ENCRYPTED
TOO_SHORT, SILENT = ContentProblem.TOO_SHORT, ContentProblem.SILENT

ID3 = b"ID3\x04\x00\x00\x00\x00\x00\x0a" + bytes(10)


def half(content: bytes) -> bytes:
    return content[: len(content) // 2]


@pytest.mark.parametrize(
    ("content", "kind", "problem"),
    [
        pytest.param(pdf(), "pdf", None, id="a document"),
        pytest.param(b"junk\r\n" + pdf(), "pdf", None, id="a document after some junk"),
        pytest.param(b"<script>x</script>\n" + pdf(), "other", None, id="a page before a document"),
        pytest.param(b"\xef\xbb\xbf \n<a>" + pdf(), "other", None, id="markup after blanks"),
        pytest.param(b"#!AMR\n" + b"\x7c" * 60, "audio", TOO_SHORT, id="AMR without speech"),
        pytest.param(pdf(pages=0), "pdf", DAMAGED, id="a document without pages"),
        pytest.param(pdf(password="secret"), "pdf", ENCRYPTED, id="an encrypted document"),
        pytest.param(pdf(password=""), "pdf", ENCRYPTED, id="one that opens without a password"),
        pytest.param(half(pdf(pages=5)), "pdf", DAMAGED, id="half a document"),
        pytest.param(b"%PDF-1.7\nstartxref\n0\n%%EOF\n", "pdf", DAMAGED, id="a shell of a document"),
        pytest.param(JPEG, "other", None, id="a photograph"),
        pytest.param(tone(), "audio", None, id="MPEG"),
        pytest.param(ID3 + tone(), "audio", None, id="MPEG with a tag"),
        pytest.param(ID3 + b"nothing to hear" * 500, "audio", DAMAGED, id="a tag and no MPEG"),
        pytest.param(half(tone()), "audio", DAMAGED, id="half an MPEG"),
        pytest.param(silence(), "audio", SILENT, id="silence as MPEG"),
        pytest.param(tone(0.5), "audio", TOO_SHORT, id="half a second of MPEG"),
        pytest.param(tone(container="WAV"), "audio", None, id="WAV"),
        pytest.param(half(tone(container="WAV")), "audio", DAMAGED, id="half a WAV"),
        pytest.param(silence(container="WAV"), "audio", SILENT, id="silence as WAV"),
        pytest.param(tone(container="WAV", loudness=0.0005), "audio", SILENT, id="noise 66 dB down"),
        pytest.param(tone(container="WAV", loudness=0.005), "audio", None, id="a whisper 46 dB down"),
        pytest.param(telephone_wav(), "audio", None, id="a telephone WAV"),
        pytest.param(telephone_wav(0.5), "audio", TOO_SHORT, id="half a second of telephone WAV"),
        pytest.param(tone(container="FLAC"), "audio", None, id="FLAC"),
        pytest.param(half(tone(container="FLAC")), "audio", DAMAGED, id="half a FLAC"),
        pytest.param(tone(container="OGG"), "audio", None, id="Ogg"),
        pytest.param(mp4(), "audio", None, id="MP4"),
        pytest.param(mp4(0.5), "audio", TOO_SHORT, id="half a second of MP4"),
        pytest.param(mp4()[:-10], "audio", DAMAGED, id="MP4 without its end"),
        pytest.param(mp4(handler=b"vide"), "other", None, id="a film as MP4"),
        pytest.param(mp4(handler=b"text"), "audio", DAMAGED, id="MP4 without sound"),
        pytest.param(amr(), "audio", None, id="AMR"),
        pytest.param(amr()[:-5], "audio", DAMAGED, id="AMR without its end"),
        pytest.param(adts(), "audio", None, id="AAC"),
        pytest.param(adts(0.5), "audio", TOO_SHORT, id="half a second of AAC"),
    ],
)
def test_a_file_is_what_its_bytes_are(
    content: bytes, kind: str, problem: ContentProblem | None, tmp_path: Path
) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    found = inspect_file(path)
    assert (found.kind, found.problem) == (FileKind(kind), problem)


def test_pages_and_seconds_are_told(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(pdf(pages=3))
    assert inspect_file(path).pages == 3
    for content in (tone(2.0), amr(2.0), mp4(2.0), telephone_wav(2.0)):
        path.write_bytes(content)
        assert inspect_file(path).seconds == pytest.approx(2.0, abs=0.1)


@pytest.mark.parametrize("fate", [signal.SIGSEGV, signal.SIGSTOP], ids=["crash", "standstill"])
def test_the_inspector_outlives_a_file_that_its_process_does_not(fate: signal.Signals, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(pdf())
    with Inspector() as inspector, path.open("rb") as file:
        assert inspector.inspect(file).problem is None
        assert inspector._process is not None
        inspector._process.send_signal(fate)
        inspector._seconds = 0.5
        assert inspector.inspect(file) == Inspected("application/pdf", DAMAGED)
        inspector._seconds = SECONDS
        assert inspector.inspect(file).problem is None


def test_the_inspector_sees_nothing_of_our_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    path = tmp_path / "file"
    path.write_bytes(pdf())
    with Inspector() as inspector, path.open("rb") as file:
        inspector.inspect(file)
        assert inspector._process is not None
        environ = Path(f"/proc/{inspector._process.pid}/environ").read_bytes()
    assert b"AWS" not in environ
