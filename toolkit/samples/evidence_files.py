"""Evidence files made from nothing: genuine PDF and MPEG audio, and what people send by mistake instead.

Each file carries its own mark (the sale and the type), so that no two have the same content unless that is
wanted. Equal arguments give equal bytes.
"""

import re
import struct
from base64 import b64decode
from collections.abc import Sequence
from hashlib import sha256
from importlib import resources
from typing import Final

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

_ODD_DOCUMENTS: Final = ("blank", "link", "locked", "script")

_MARK_BITS: Final = 32
_FRAME_BYTES: Final = 72  # of a frame of 36 ms, in each of the recordings
_HALF_SECOND: Final = 14  # frames


def document(kind: str, title: str, lines: Sequence[str]) -> bytes:
    """Return what is sent as a document; ``kind`` is a word of the story.

    It is a page of ``documents/`` with a title and at most three lines (Latin-1), which tell two documents apart.
    """
    if kind == "photo":
        return _PIXEL + " ".join(lines).encode()
    texts = dict(zip((b"title", b"line 1", b"line 2", b"line 3"), (title, *lines), strict=False))

    def filled(place: re.Match[bytes]) -> bytes:
        text = re.sub(r"([\\()])", r"\\\1", texts.get(place[1], ""))
        return text.encode("latin-1").ljust(len(place[0]))

    name = kind if kind in _ODD_DOCUMENTS else "sound"
    page = resources.files(__package__).joinpath("documents", f"{name}.pdf").read_bytes()
    whole = re.sub(rb"\{(title|line \d)\} *", filled, page)
    return whole[: len(whole) // 2] if kind == "cut" else whole


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
    return [audio[start : start + _FRAME_BYTES] for start in range(0, len(audio), _FRAME_BYTES)]
