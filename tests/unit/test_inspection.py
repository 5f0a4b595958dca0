"""The inspection of all bytes finds damaged and disguised files; their types, and their normal forms."""

import resource
import signal
import zlib
from pathlib import Path

import pytest

from tests.support.evidence_files import TEXT, page, pdf, picture, tone
from toolkit.contract.contents import ActivePart, ContentProblem, Depth
from toolkit.contract.evidence import FileKind
from toolkit.errors import NotInspected
from toolkit.evidence import inspection
from toolkit.evidence.inspection import SECONDS, Inspector, inspect_file
from toolkit.evidence.kinds import Inspected, media_type_of_bytes, readers_of
from toolkit.samples.evidence_files import RECORDINGS, document, mp3

DAMAGED = ContentProblem.DAMAGED

OF_PDF, OF_MP3 = ({"readers": readers_of(kind)} for kind in (FileKind.PDF, FileKind.AUDIO))
SLOW_PDF = Inspected("application/pdf", active_parts=(ActivePart.UNCLEAR,), depth=Depth.PART, **OF_PDF)


@pytest.mark.parametrize(
    ("fate", "body", "told"),
    [
        (signal.SIGSEGV, pdf(), Inspected("application/pdf", DAMAGED, **OF_PDF)),
        (signal.SIGXCPU, pdf(), SLOW_PDF),
        (signal.SIGXCPU, tone(2), Inspected("audio/mpeg", DAMAGED, **OF_MP3)),
    ],
    ids=["crash", "a PDF that takes too long", "a recording that takes too long"],
)
def test_the_inspector_outlives_a_file_that_its_process_does_not(fate, body, told, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(body)
    with Inspector() as inspector, path.open("rb") as file:
        before = inspector.inspect(file)
        assert 0 < resource.prlimit(inspector._process.pid, resource.RLIMIT_CPU)[0] <= 2 * SECONDS
        inspector._process.send_signal(fate)
        assert inspector.inspect(file) == told
        assert inspector.inspect(file) == before


@pytest.mark.parametrize("fate", [signal.SIGKILL, signal.SIGSTOP], ids=["was ended", "stands still"])
def test_nothing_is_said_of_a_file_whose_inspection_others_stop(fate, tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(tone(2))
    with Inspector() as inspector, path.open("rb") as file:
        before = inspector.inspect(file)
        inspector._process.send_signal(fate)
        with monkeypatch.context() as patched, pytest.raises(NotInspected):
            patched.setattr(inspection, "_STANDSTILL", 0.5)
            inspector.inspect(file)
        assert inspector.inspect(file) == before


def test_the_inspector_sees_nothing_of_our_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    path = tmp_path / "file"
    path.write_bytes(pdf())
    with Inspector() as inspector, path.open("rb") as file:
        inspector.inspect(file)
        environ = Path(f"/proc/{inspector._process.pid}/environ").read_bytes()
    assert b"AWS" not in environ


def bomb():
    """A page that unpacks to 200 MB."""
    return page(zlib.compress(bytes(200_000_000), 1), packed=b"/Filter /FlateDecode")


def tangled():
    """A page with a form that names itself 300 times: read to a depth of three, that is 27 million forms."""
    named = b"/XObject << %s >>" % b" ".join(b"/I%d 6 0 R" % number for number in range(300))
    form = b"<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Length 6 /Resources << %s >> >>" % named
    return page(b"/I0 Do", resources=named, objects=(form + b"\nstream\n/I0 Do\nendstream",))


@pytest.mark.parametrize("made", [tangled, bomb])
def test_a_document_that_asks_for_too_much_is_read_in_time_and_memory(made, tmp_path):
    path = tmp_path / "a.pdf"
    path.write_bytes(made())
    found = inspect_file(path)
    assert (found.problem, found.active_parts) == (None, (ActivePart.BLANK,))


MP3_FRAME = bytes.fromhex("fffb9064") + bytes(413)
"""One frame of MPEG-1 layer III at 128 kbit/s and 44.1 kHz: 417 bytes."""


@pytest.mark.parametrize(
    ("head", "media_type"),
    [
        (b"\n" * 1019 + b"%PDF-1.4", "application/pdf"),
        (b"\n" * 1020 + b"%PDF-1.4", "application/octet-stream"),
        (MP3_FRAME * 3, "audio/mpeg"),
        (MP3_FRAME * 2, "application/octet-stream"),
        (MP3_FRAME[:36] + b"Info", "audio/mpeg"),
        (b"OggS" + bytes(24) + b"\x80theora", "application/ogg"),
        (b"\x00\x00\x00\x20ftypheic\x00\x00\x00\x00", "application/octet-stream"),
        (b"#!AMR-WB\n\x3c", "audio/amr-wb"),
        (b"PK\x03\x04", "application/zip"),
        (b"\xff\xd8\xff\xe1 %PDF-1.7", "image/jpeg"),
        ("Sehr geehrte".encode("utf-16"), "application/octet-stream"),
        (b"plain text", "application/octet-stream"),
        (b"", "application/octet-stream"),
    ],
)
def test_the_first_bytes_tell_the_media_type(head, media_type):
    assert media_type_of_bytes(head) == media_type


TAG = b"ID3\x04\x00\x00\x00\x00\x00\x0a" + bytes(10)


def form(folder, content):
    (folder / "file").write_bytes(content)
    return inspect_file(folder / "file").normal_form


@pytest.mark.parametrize(
    ("content", "around"),
    [
        (tone(), lambda content: TAG + content),
        (tone(), lambda content: content + b"x"),
        (tone(), lambda content: content + bytes(5000) + b"TAG" + bytes(125)),
        (tone(2.0, "WAV"), lambda content: content + b"x"),
        (document("sound", "a", ["b"]), lambda content: content + b"% a comment\n"),
        (document("sound", "a", ["b"]), lambda content: content.replace(b"Helvetica", b"Courier--")),
    ],
)
def test_what_is_put_around_makes_no_difference(content, around, tmp_path):
    before = form(tmp_path, content)
    assert before is not None
    assert form(tmp_path, around(content)) == before


NOTE = b"/Annots [<< /Type /Annot /Subtype /Widget /FT /Tx /Rect [72 600 400 630] %s >>]"
DRAWN = [b"<< /Length 1 >>\nstream\n%d\nendstream" % each for each in range(2)]
"""What is drawn over a form that several clients filled in."""


def test_other_contents_have_another_form(tmp_path):
    forms = [
        form(tmp_path, tone(2.0)),
        form(tmp_path, tone(2.1)),
        form(tmp_path, tone(2.0, "WAV")),
        form(tmp_path, document("sound", "a", ["b"])),
        form(tmp_path, document("sound", "a", ["c"])),
        *(form(tmp_path, page(TEXT, page=NOTE % note)) for note in (b"/V (Ana)", b"/V (Rui)", b"/AS /On", b"")),
        *(form(tmp_path, page(TEXT, page=NOTE % b"/AP << /N 6 0 R >>", objects=(each,))) for each in DRAWN),
        *(form(tmp_path, picture(bytes(100), 10, mask=each)) for each in DRAWN),
        *(form(tmp_path, mp3(RECORDINGS["POV"][0], f"V-2026-{number:05}")) for number in range(20)),
    ]
    assert len(set(forms)) == len(forms)


def test_a_file_in_which_there_is_nothing_has_none(tmp_path):
    assert form(tmp_path, pdf(operators=b"")) is None
    assert form(tmp_path, b"ID3 and no more") is None
    assert form(tmp_path, b"%PDF-1.4 no more") is None
