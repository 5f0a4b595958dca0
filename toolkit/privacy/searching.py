"""Find the files that tell of a person by the texts in them: also in workbooks, archives, and PDFs that hold text.

Of a file that cannot be searched, such as a recording or a scanned page, nobody knows: it is named.
"""

import io
import json
import re
import zipfile
from collections.abc import Iterable, Iterator
from html import unescape
from pathlib import Path
from typing import Final
from unicodedata import normalize

LARGEST: Final = 200 * 1024**2  # bytes of a file, or of a part of an archive, that are searched at most

_MARKS: Final = re.compile("[\u00ad\u0300-\u036f\u200b]+")
_GAPS: Final = re.compile(r"\s+")
_ELEVEN: Final = re.compile(r"[0-9]{11}")  # a CPF or a telephone, which may be written with a mask
_MASK: Final = r"[\s.()-]"
_UTF16: Final = (b"\xff\xfe", b"\xfe\xff")


def forms_of(texts: Iterable[str]) -> frozenset[str]:
    """Return texts as they are searched for: without gaps, case and accents; also as JSON escapes them."""
    return frozenset(_GAPS.sub("", _spaced(form)) for text in texts for form in (text, json.dumps(text)[1:-1]))


def search(folders: Iterable[Path], needles: frozenset[str]) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Return the files below the folders that hold one of the needles, and those of which nobody knows."""
    found, unknown = [], []
    for path in sorted({each for folder in folders if needles for each in folder.rglob("*")}):
        if path.is_symlink() or not path.is_file():
            continue
        texts = [path.name, *(_texts(path.read_bytes()) if path.stat().st_size <= LARGEST else [None])]
        if any(_tells(text, needles) for text in texts if text is not None):
            found.append(path)
        elif None in texts:
            unknown.append(path)
    return tuple(found), tuple(unknown)


def _spaced(text: str) -> str:
    return _MARKS.sub("", normalize("NFD", text.casefold()))


def _tells(text: str, needles: frozenset[str]) -> bool:
    """Tell whether a text holds one of the needles, and not inside of a longer word or address."""
    spaced = _spaced(unescape(text))
    plain, unmasked = _GAPS.sub("", spaced), re.sub(f"{_MASK}+", "", spaced)
    return any(
        needle in (unmasked if _ELEVEN.fullmatch(needle) else plain) and _whole(needle).search(spaced)
        for needle in needles
    )


def _whole(needle: str) -> re.Pattern[str]:
    """Return the pattern of a needle with any gaps, or its mask; beside its end stands no other letter."""
    before = r"(?:(?<![^\W\d_])|(?<=\\[nrt]))" if needle[0].isalpha() else ""  # JSON escapes a line's end
    after = r"(?![^\W\d_])" if needle[-1].isalpha() else ""
    gap = f"{_MASK}*" if _ELEVEN.fullmatch(needle) else r"\s*"
    return re.compile(before + gap.join(map(re.escape, needle)) + after)


def _texts(content: bytes) -> Iterator[str | None]:
    """Yield the texts in a file, and ``None`` for a part that cannot be read as text."""
    if content.startswith(b"%PDF-"):
        yield content.decode("latin-1")
        yield from _of_pdf(content)
    elif zipfile.is_zipfile(io.BytesIO(content)):
        yield from _of_archive(content)
    elif content.startswith(_UTF16):
        yield content.decode("utf-16", "replace")
    else:
        try:
            yield content.decode()
        except UnicodeDecodeError:
            yield content.decode("cp1252", "replace")
        if b"\0" in content:
            yield None


def _of_pdf(content: bytes) -> Iterator[str | None]:
    try:
        import pypdfium2
    except ImportError:  # the extra audit has it
        yield None
        return
    try:
        with pypdfium2.PdfDocument(content) as document:
            for page in document:
                yield page.get_textpage().get_text_bounded() or None
    except pypdfium2.PdfiumError:
        yield None


def _of_archive(content: bytes) -> Iterator[str | None]:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for member in archive.infolist():
                yield member.filename
                if member.file_size > LARGEST:
                    yield None
                else:
                    yield from _texts(archive.read(member))
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError):  # damaged, or with a password
        yield None
