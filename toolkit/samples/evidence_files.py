"""Evidence files made from nothing: genuine PDF and MPEG audio, and what people send by mistake instead.

Each file carries its own mark (the sale and the type), so that no two have the same content unless that is
wanted. Equal arguments give equal bytes.
"""

import struct
from base64 import b64decode
from collections.abc import Sequence
from hashlib import sha256
from importlib import resources
from typing import Final

from toolkit.evidence.kinds import mpeg_frame_length

RECORDINGS: Final = {"POV": ("pov-1.mp3", "pov-2.mp3", "pov-3.mp3"), "AUT": ("aut-1.mp3", "aut-2.mp3")}
"""The recordings that a type can be made of; what they say is in ``recordings/README.md``."""

FIRST: Final = RECORDINGS["POV"][0]

_PIXEL: Final = b64decode(
    b"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg=="
)
"""A photo: a PNG of one pixel."""

_ERROR_PAGE: Final = """<!DOCTYPE html>
<html lang='pt-BR'><head><meta charset='utf-8'><title>502</title></head>
<body><h1>Erro 502</h1><p>O arquivo não está disponível ({}).</p></body></html>
"""
"""The page of a failed download, which somebody saved under the name of a recording."""

_MARK_BITS: Final = 32
_HALF_SECOND: Final = 14
"""Frames of 36 ms."""


IN_CATALOG: Final = {"script": b" /OpenAction << /S /JavaScript /JS (this.zoom = 100;) >>"}
IN_PAGE: Final = {
    "link": b" /Annots [<< /Type /Annot /Subtype /Link /Rect [72 700 300 720] /Border [0 0 0]"
    b" /A << /S /URI /URI (https://example.com/) >> >>]"
}
IN_TRAILER: Final = {  # an encryption that no empty password opens
    "locked": b" /Encrypt << /Filter /Standard /V 1 /R 2 /Length 40 /P -4 /O <%s> /U <%s> >> /ID [<00> <00>]"
    % (b"6c" * 32, b"75" * 32)
}
"""The extra part of an odd document, by the word that the story has for it."""


def document(kind: str, title: str, lines: Sequence[str]) -> bytes:
    """Return what is sent as a document; ``kind`` is a word of the story, ``lines`` tell two documents apart."""
    if kind == "photo":
        return _PIXEL + " ".join(lines).encode()
    whole = pdf(title, lines, kind)
    return whole[: len(whole) // 2] if kind == "cut" else whole


def pdf(title: str, lines: Sequence[str], kind: str = "") -> bytes:
    """Return a PDF of one A4 page with a title and lines in Latin-1; a ``blank`` one shows nothing of them."""
    drawn = [f"BT /F1 18 Tf 72 770 Td ({_escaped(title)}) Tj ET", "0.6 w 72 758 m 523 758 l S"]
    drawn += [
        f"BT /F1 11 Tf 72 {730 - 18 * number} Td ({_escaped(line)}) Tj ET" for number, line in enumerate(lines)
    ]
    content = "\n".join(drawn if kind != "blank" else (f"% {line}" for line in lines)).encode("latin-1")
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R%s >>" % IN_CATALOG.get(kind, b""),
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R"
        b" /Resources << /Font << /F1 5 0 R >> >>%s >>" % IN_PAGE.get(kind, b""),
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    body = bytearray(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
    offsets = []
    for number, text in enumerate(objects, start=1):
        offsets.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, text)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    size = len(objects) + 1
    trailer = b"xref\n0 %d\n0000000000 65535 f \n%strailer\n<< /Size %d /Root 1 0 R%s >>\nstartxref\n%d\n%%%%EOF\n"
    return bytes(body + trailer % (size, table, size, IN_TRAILER.get(kind, b""), len(body)))


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")


def mp3(recording: str, title: str, heard: str | None = None) -> bytes:
    """Return a recording of ``recordings/`` with an ID3v2.3 tag that holds ``title`` (Latin-1) in front.

    Some of its frames come again at the end, others for each title (or ``heard``), so that no two are heard alike.
    """
    audio = resources.files(__package__).joinpath("recordings", recording).read_bytes()
    frames = _frames(audio)
    middle = frames[len(frames) // 2 :][:_MARK_BITS]
    mark = int.from_bytes(sha256((heard or title).encode()).digest()[:4], "big")
    return _tag(title) + audio + b"".join(each for bit, each in enumerate(middle) if mark >> bit & 1)


def recording(kind: str, name: str, mark: str) -> bytes:
    """Return what is sent as the recording ``name``; ``kind`` is a word of the story, ``mark`` tells two apart."""
    match kind:
        case "twin":
            return mp3(FIRST, "twin")
        case "alike":
            return mp3(FIRST, mark, heard="alike")
        case "same":
            return mp3(FIRST, f"{mark.split()[0]} same")
        case "web-page":
            return _ERROR_PAGE.format(mark).encode()
        case "phone":  # four seconds with the codec AMR
            return b"#!AMR\n" + (b"\x3c" + sha256(mark.encode()).digest()[:31]) * 200
        case "declined":
            return mp3("pov-no.mp3", mark)
        case "silent":
            return mp3("silence.mp3", mark)
    whole = mp3(name, mark)
    if kind == "short":
        return _tag(mark) + b"".join(_frames(whole[len(_tag(mark)) :])[:_HALF_SECOND])
    if kind == "cut":  # the middle was lost on its way
        third = len(whole) // 3
        return whole[:third] + bytes(third) + whole[2 * third :]
    return whole


def _tag(title: str) -> bytes:
    text = b"\x00" + title.encode("latin-1")
    frame = b"TIT2" + struct.pack(">IH", len(text), 0) + text
    size = bytes(len(frame) >> shift & 0x7F for shift in (21, 14, 7, 0))
    return b"ID3\x03\x00\x00" + size + frame


def _frames(audio: bytes) -> list[bytes]:
    frames, position = [], 0
    while (length := mpeg_frame_length(audio[position : position + 4])) is not None:
        frames.append(audio[position : position + length])
        position += length
    return frames
