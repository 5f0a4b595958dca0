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

_ASF: Final = rb"\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9\x00\xaa\x00\x62\xce\x6c"
_ASF_SOUND: Final = rb"\x40\x9e\x69\xf8\x4d\x5b\xcf\x11\xa8\xfd\x00\x80\x5f\x5c\x44\x2b"
_ASF_PICTURE: Final = rb"\xc0\xef\x19\xbc\x4d\x5b\xcf\x11\xa8\xfd\x00\x80\x5f\x5c\x44\x2b"

_STARTS: Final = tuple(
    (re.compile(start, re.DOTALL), media_type)
    for start, media_type in (
        (rb"ID3", "audio/mpeg"),
        (rb"fLaC", "audio/flac"),
        (rb"#!AMR-WB\n", "audio/amr-wb"),
        (rb"#!AMR\n", "audio/amr"),
        (rb"\.snd", "audio/basic"),
        (rb"caff", "audio/x-caf"),
        (rb"\xff\xd8\xff", "image/jpeg"),
        (rb"\x89PNG\r\n\x1a\n", "image/png"),
        (rb"GIF8", "image/gif"),
        (rb"II\*\0|MM\0\*", "image/tiff"),
        (rb"PK\x03\x04", "application/zip"),
        (rb"\xd0\xcf\x11\xe0", "application/x-ole-storage"),
        (rb"\x1f\x8b", "application/gzip"),
        (rb"\x7fELF", "application/x-executable"),
        (rb"MZ", "application/x-msdownload"),
        (rb"<html|<!DOCTYPE", "text/html"),
        (rb"(?:RIFF|RF64|BW64).{4}WAVE", "audio/wav"),
        (rb"(?:RIFF|RF64|BW64).{4}AVI ", "video/x-msvideo"),
        (rb"FORM.{4}AIF[FC]", "audio/aiff"),
        (rb"OggS.{0,248}?(?:OpusHead|\x01vorbis|Speex   |\x7fFLAC)", "audio/ogg"),
        (rb"OggS", "application/ogg"),
        (rb".{4}ftypqt  ", "video/quicktime"),
        (rb".{4}ftyp(?:M4A |M4B |F4A |isom|iso[2456]|mp4[12]|dash|3g)", "audio/mp4"),
        (rb"RIFF|RF64|BW64|FORM|.{4}ftyp", UNKNOWN),
        (rb"\x1a\x45\xdf\xa3(?=.*\x86.A_[A-Z])(?!.*\x86.V_[A-Z])", "audio/webm"),
        (rb"\x1a\x45\xdf\xa3", "video/webm"),
        (rb"%b(?=.*%b)(?!.*%b)" % (_ASF, _ASF_SOUND, _ASF_PICTURE), "audio/x-ms-wma"),
        (_ASF, "video/x-ms-asf"),
        # A browser takes what begins so for a page, and runs it.
        (rb"(?:\xef\xbb\xbf)?[\s\0]*<(?=.{0,1019}%PDF-)", "text/html"),
        (rb".{0,1019}%PDF-", PDF),
        # MPEG has its encoder's note, or frames of one kind: eleven set bits alone also start a UTF-16 text.
        (rb"\xff[\xe2-\xe7\xf2-\xf7\xfa-\xff][\x10-\xef].{10,35}(?:Xing|Info)", "audio/mpeg"),
        (rb"(\xff[\xe2-\xe7\xf2-\xf7\xfa-\xff])[\x10-\xef](?:.{20,2880}?\1[\x10-\xef]){2}", "audio/mpeg"),
        (rb"(\xff[\xf0\xf1\xf8\xf9].).{4,}?\1", "audio/aac"),
    )
)
"""The media type by how a file starts; the first that fits counts."""

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
    return next((media_type for start, media_type in _STARTS if start.match(head)), UNKNOWN)


def tag_length(header: bytes) -> int:
    """Return the size of the tag of MP3 (ID3v2) that starts with ``header``, 0 where none does."""
    size = sum(byte << 7 * place for place, byte in enumerate(reversed(header[6:10])))
    return 10 + size if header.startswith(b"ID3") else 0
