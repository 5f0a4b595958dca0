"""Say what a file is: its type by its first bytes, whatever its name says, and what was found in all of them.

Recording software in call centres writes many containers, and all of them are audio to the contract. A
container that may also hold pictures (MP4, Matroska) counts as audio only where its first bytes name no
picture; the full verification (``toolkit.evidence.inspection``) looks at its tracks.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from toolkit.contract.contents import SPEECH_READER, ActivePart, ContentProblem, Depth
from toolkit.contract.evidence import FileKind, kind_of_media_type

SIGNATURE_BYTES: Final = 4096  # are looked at: a PDF's header (within 1,024), or three frames of MPEG audio
UNKNOWN: Final = "application/octet-stream"
PDF: Final = "application/pdf"

_PDF_WITHIN: Final = 1024

_MARKUP: Final = re.compile(rb"(?:\xef\xbb\xbf)?[\s\0]*<")
"""A browser takes what begins so for a page, and runs it, whatever follows."""

_AT_START: Final = (
    (b"ID3", "audio/mpeg"),
    (b"fLaC", "audio/flac"),
    (b"#!AMR-WB\n", "audio/amr-wb"),
    (b"#!AMR\n", "audio/amr"),
    (b".snd", "audio/basic"),
    (b"caff", "audio/x-caf"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"GIF8", "image/gif"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"PK\x03\x04", "application/zip"),
    (b"\xd0\xcf\x11\xe0", "application/x-ole-storage"),
    (b"\x1f\x8b", "application/gzip"),
    (b"\x7fELF", "application/x-executable"),
    (b"MZ", "application/x-msdownload"),
    (b"<html", "text/html"),
    (b"<!DOCTYPE", "text/html"),
)

_OGG_CODECS: Final = (b"OpusHead", b"\x01vorbis", b"Speex   ", b"\x7fFLAC")
_MP4_BRANDS: Final = frozenset(
    (b"M4A ", b"M4B ", b"F4A ", b"isom", b"iso2", b"iso4", b"iso5", b"iso6", b"mp41", b"mp42", b"dash")
)
_MATROSKA_AUDIO: Final = re.compile(rb"\x86.A_[A-Z]", re.DOTALL)
_MATROSKA_VIDEO: Final = re.compile(rb"\x86.V_[A-Z]", re.DOTALL)
_ASF: Final = bytes.fromhex("3026b2758e66cf11a6d900aa0062ce6c")
_ASF_AUDIO: Final = bytes.fromhex("409e69f84d5bcf11a8fd00805f5c442b")
_ASF_VIDEO: Final = bytes.fromhex("c0ef19bc4d5bcf11a8fd00805f5c442b")

_MPEG: Final = re.compile(
    rb"(\xff[\xe2-\xe7\xf2-\xf7\xfa-\xff])[\x10-\xef](?:.{20,2880}?\1[\x10-\xef]){2}", re.DOTALL
)
"""Three frames of MPEG audio (layers I to III) of one kind, none of them longer than the longest there is."""

_READERS: Final[Mapping[FileKind, tuple[str, ...]]] = {
    FileKind.AUDIO: ("av", SPEECH_READER),
    FileKind.PDF: ("pypdfium2", "pypdf"),
}


@cache
def readers_of(kind: FileKind) -> tuple[str, ...]:
    """Return the installed packages that read all of such a file, each with its version."""
    found = []
    for each in _READERS.get(kind, ()):
        with suppress(PackageNotFoundError):
            found.append(f"{each} {version(each)}")
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Inspected:
    """The kind of one file and its fault, if any; ``seconds`` and ``pages`` where they apply."""

    media_type: str
    problem: ContentProblem | None = None
    pages: int | None = None
    seconds: float | None = None
    normal_form: str | None = None  # the SHA-256 of what is heard or seen, without what is put around it
    active_parts: Sequence[ActivePart] = ()
    speech_seconds: float | None = None  # ``None``: not looked for, or not to the end and none found
    depth: Depth = Depth.TYPE
    readers: Sequence[str] = ()  # the names and versions of the packages that read it
    sha256: str | None = None  # of its bytes, known to whoever fetched it
    stored_type: str | None = None  # the media type that the bucket declares

    @property
    def kind(self) -> FileKind:
        """The file kind of the media type."""
        return kind_of_media_type(self.media_type)


def media_type_of_bytes(head: bytes) -> str:
    """Return the media type of a file that starts with ``head``, ``UNKNOWN`` where none is recognised.

    ``head`` are ``SIGNATURE_BYTES`` bytes, or the whole file.
    """
    known = next((each for signature, each in _AT_START if head.startswith(signature)), None) or _container(head)
    if known is not None:
        return known
    if b"%PDF-" in head[:_PDF_WITHIN]:
        return "text/html" if _MARKUP.match(head) else PDF
    if _MPEG.match(head):  # eleven set bits alone also start a UTF-16 text
        return "audio/mpeg"
    first = _adts_frame_length(head)
    return "audio/aac" if first and _adts_frame_length(head[first:]) else UNKNOWN


def _container(head: bytes) -> str | None:
    form = head[8:12]
    if head[:4] in (b"RIFF", b"RF64", b"BW64"):
        return {b"WAVE": "audio/wav", b"AVI ": "video/x-msvideo"}.get(form, UNKNOWN)
    if head[:4] == b"FORM":
        return "audio/aiff" if form in (b"AIFF", b"AIFC") else UNKNOWN
    if head[:4] == b"OggS":
        return "audio/ogg" if any(codec in head[:256] for codec in _OGG_CODECS) else "application/ogg"
    if head[4:8] == b"ftyp":
        if form == b"qt  ":
            return "video/quicktime"
        return "audio/mp4" if form in _MP4_BRANDS or form[:2] == b"3g" else UNKNOWN
    if head[:4] == b"\x1a\x45\xdf\xa3":
        return "audio/webm" if _MATROSKA_AUDIO.search(head) and not _MATROSKA_VIDEO.search(head) else "video/webm"
    if head[:16] == _ASF:
        return "audio/x-ms-wma" if _ASF_AUDIO in head and _ASF_VIDEO not in head else "video/x-ms-asf"
    return None


def tag_length(header: bytes) -> int:
    """Return the size of the tag of MP3 (ID3v2) that starts with ``header``, 0 where none does."""
    size = sum(byte << 7 * place for place, byte in enumerate(reversed(header[6:10])))
    return 10 + size if header.startswith(b"ID3") else 0


def _adts_frame_length(header: bytes) -> int:
    """Return the size of the AAC frame that starts with ``header``, 0 where none does."""
    if len(header) < 7 or header[0] != 0xFF or header[1] & 0xF6 != 0xF0 or header[2] >> 2 & 15 > 12:
        return 0
    length = (header[3] & 3) << 11 | header[4] << 3 | header[5] >> 5
    return length if length >= 7 else 0
