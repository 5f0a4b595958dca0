"""Find the encoding of a text file, and read it as blocks of UTF-8."""

import codecs
import hashlib
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Final

import numpy as np

from toolkit.errors import UnreadableFile
from toolkit.intake.sources import TableSource

BLOCK: Final = 6 * 1024 * 1024
"""Bytes read at a time; what is held of a file is a few of these, however long it is."""
FIRST_BLOCK: Final = 512 * 1024
"""Bytes read first, so that whoever waits for the first rows can begin soon."""

TEXT_BYTES: Final = 4 * 1024**3
"""The longest text that is read, as it is outside of any archive: some 20 million clients."""

_BOMS: Final = (
    (codecs.BOM_UTF8, "UTF-8 with BOM"),
    (codecs.BOM_UTF32_LE, "UTF-32"),  # before UTF-16, whose mark it starts with
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
_CODECS: Final = {"UTF-8 with BOM": "utf-8-sig"}

_UTF8_IN_WINDOWS: Final = re.compile("Ã[¡¢£§©ª\u00ad³´µº]".encode())
"""The letters áâãçéêíóôõú in UTF-8, as they look when they are read as Windows-1252."""


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
    with source.open() as stream, ThreadPoolExecutor(1) as hashing:
        for block in _read(stream):
            hashed = hashing.submit(digest.update, block)
            head = head or block[:4096]
            size += len(block)
            if size > TEXT_BYTES:
                raise UnreadableFile(
                    "{}: holds more than {} GiB of text; split it.", source.name, TEXT_BYTES >> 30
                )
            is_utf8 = is_utf8 and _decodes(decoder, block)
            hashed.result()
    return Contents(digest.hexdigest(), size, head, is_utf8 and _decodes(decoder, b"", final=True))


def find_encoding(source: TableSource, contents: Contents, asked: str | None) -> str:
    """Return the encoding: as wanted, else by byte order mark, else UTF-8 if all bytes fit, else Windows-1252.

    Raises:
        UnreadableFile: the bytes do not fit the encoding.
    """
    encoding = asked or _guess(contents)
    if codec(encoding) in {"utf-8", "utf-8-sig"}:
        mixed = not contents.is_utf8
        if mixed and asked:
            raise UnreadableFile("{}: is not text in {}; leave --encoding out to find out.", source.name, encoding)
    else:  # fails now rather than half-way through a load
        mixed = any(_UTF8_IN_WINDOWS.search(block) and not asked for block in blocks(source, encoding))
    if mixed:
        raise UnreadableFile(
            "{}: is partly UTF-8 and partly not; save it as CSV in UTF-8 or as XLSX, or name its encoding: "
            "--encoding",
            source.name,
        )
    return encoding


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
    with source.open() as stream:
        if name in {"utf-8", "utf-8-sig"}:
            for number, block in enumerate(_read(stream)):
                yield block.removeprefix(codecs.BOM_UTF8) if number == 0 else block
            return
        decoder = codecs.getincrementaldecoder(name)()
        try:
            for block in _read(stream):
                yield _decode(decoder, block, name).encode()
            yield decoder.decode(b"", final=True).encode()
        except UnicodeError:
            raise UnreadableFile(
                "{}: is not text in {}; save it as CSV in UTF-8 or as XLSX, or name its encoding: --encoding",
                source.name,
                encoding,
            ) from None


def _read(stream: IO[bytes]) -> Iterator[bytes]:
    size = min(BLOCK, FIRST_BLOCK)
    while block := stream.read(size):
        yield block
        size = BLOCK


def _guess(contents: Contents) -> str:
    for bom, encoding in _BOMS:
        if contents.head.startswith(bom):
            return encoding
    even, odd = contents.head[::2].count(0), contents.head[1::2].count(0)
    if max(even, odd) > len(contents.head) * 3 // 8:  # Latin text in UTF-16: every other byte is zero
        return "utf-16-le" if odd > even else "utf-16-be"
    return "UTF-8" if contents.is_utf8 else "Windows-1252"


def _decode(decoder: codecs.IncrementalDecoder, block: bytes, name: str) -> str:
    # Where Windows-1252 and Latin-1 agree, the latter decodes ten times faster.
    if name == "cp1252":
        values = np.frombuffer(block, dtype=np.uint8)
        if not ((values >= 0x80) & (values < 0xA0)).any():
            return block.decode("latin-1")
    return decoder.decode(block)


def _decodes(decoder: codecs.IncrementalDecoder, block: bytes, *, final: bool = False) -> bool:
    try:
        decoder.decode(block, final)
    except UnicodeDecodeError:
        return False
    return True
