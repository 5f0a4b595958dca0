"""Find the encoding of a text file, and read it as blocks of UTF-8."""

import codecs
import hashlib
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from toolkit.errors import UnreadableFile
from toolkit.intake.sources import TableSource

BLOCK: Final = 4 * 1024 * 1024
"""Bytes read at a time; what is held of a file is a few of these, however long it is."""

TEXT_BYTES: Final = 4 * 1024**3
"""The longest text that is read, as it is outside of any archive: some 20 million clients."""

_BOMS: Final = (
    (codecs.BOM_UTF8, "UTF-8 with BOM"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
_CODECS: Final = {"UTF-8 with BOM": "utf-8-sig"}

_UTF8_IN_WINDOWS: Final = re.compile("Ã[¡¢£§©ª\u00ad³´µº]".encode())
"""The letters áâãçéêíóôõú in UTF-8, as they look when they are read as Windows-1252."""

NOT_TEXT: Final = "{}: is not text in {}; save it as CSV in UTF-8 or as XLSX, or name its encoding: --encoding"


@dataclass(frozen=True, slots=True)
class Contents:
    """The results of one reading of all bytes."""

    sha256: str
    size: int
    head: bytes
    is_utf8: bool


def examine(source: TableSource) -> Contents:
    """Read the whole source once: its digest, its size, and whether it is valid UTF-8.

    Raises:
        UnreadableFile: it is too long.
    """
    digest, size, head, is_utf8 = hashlib.sha256(), 0, b"", True
    decoder = codecs.getincrementaldecoder("utf-8")()
    with source.open() as stream:
        final = False
        while not final:
            block = stream.read(BLOCK)
            final = not block
            digest.update(block)
            head = head or block[:4]
            size += len(block)
            if size > TEXT_BYTES:
                raise UnreadableFile(
                    "{}: holds more than {} GiB of text; split it.", source.name, TEXT_BYTES >> 30
                )
            try:
                is_utf8 = is_utf8 and decoder.decode(block, final) is not None
            except UnicodeDecodeError:
                is_utf8 = False
    return Contents(digest.hexdigest(), size, head, is_utf8)


def find_encoding(source: TableSource, contents: Contents, asked: str | None) -> str:
    """Return the encoding: as wanted, else by byte order mark, else UTF-8 if all bytes fit, else Windows-1252.

    Raises:
        UnreadableFile: the bytes do not fit the encoding.
    """
    by_mark = [encoding for mark, encoding in _BOMS if contents.head.startswith(mark)]
    encoding = asked or next(iter(by_mark), "UTF-8" if contents.is_utf8 else "Windows-1252")
    if codec(encoding) in _UTF8:
        if asked and not contents.is_utf8:
            raise UnreadableFile("{}: is not text in {}; leave --encoding out to find out.", source.name, encoding)
        mixed = not contents.is_utf8
    else:  # fails now rather than half-way through a load
        mixed = any(_UTF8_IN_WINDOWS.search(block) and not asked for block in blocks(source, encoding))
    if mixed:
        raise UnreadableFile(
            "{}: is partly UTF-8 and partly not; save it as CSV in UTF-8 or as XLSX, or name its encoding: "
            "--encoding",
            source.name,
        )
    return encoding


_UTF8: Final = frozenset({"utf-8", "utf-8-sig"})


def codec(encoding: str) -> str:
    """Return Python's name for an encoding.

    Raises:
        UnreadableFile: there is no such encoding.
    """
    try:
        name = codecs.lookup(_CODECS.get(encoding, encoding)).name
        with suppress(UnicodeError):
            "".encode(name)  # refused where it is no encoding of text, as base64 is
        return name
    except (LookupError, ValueError):  # the second for a NUL or a surrogate
        raise UnreadableFile(
            "No such encoding: {}. Usual ones are utf-8, cp1252, latin-1, utf-16.", encoding
        ) from None


def blocks(source: TableSource, encoding: str) -> Iterator[bytes]:
    """Yield the text as UTF-8 without byte order mark, cut anywhere.

    Raises:
        UnreadableFile: the bytes do not fit the encoding.
    """
    name = codec(encoding)
    decoder = None if name in _UTF8 else codecs.getincrementaldecoder(name)()
    first, final = True, False
    with source.open() as stream:
        while not final:
            block = stream.read(BLOCK)
            final = not block
            try:
                text = block if decoder is None else decoder.decode(block, final).encode()
            except UnicodeError:
                raise UnreadableFile(NOT_TEXT, source.name, encoding) from None
            yield text.removeprefix(codecs.BOM_UTF8) if first else text
            first = False
