"""Inspect PDFs: whole, with pages, open to anybody; what they do by themselves; whether they show anything.

Nothing in them is executed, rendered or followed.
"""

import os
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pypdf import PageObject, PdfReader
from pypdf.generic import ArrayObject, DictionaryObject, IndirectObject, StreamObject

from toolkit.domain.contents import ActivePart, ContentProblem

_END_WITHIN: Final = 2048
"""Bytes from the end in which a PDF names its end; readers tolerate as much after it."""

_OBJECTS: Final = 500_000
"""Objects that are looked at; a document with more is told to be unclear."""

_TEXT: Final = re.compile(rb"""[^\s(<\[]\s*[)>\]]\s*(?:Tj|TJ|'|")""")
"""A text that is more than blanks, and the operator that shows it."""

_DRAWN: Final = re.compile(rb"\d\s+[lcvy]\s|(?<!\S)(?:BI|sh)\s")
"""A part of a drawing, a picture among the operators, or a shading."""

_FEW: Final = 10
"""Parts of a drawing that are nothing yet, such as a frame."""

_SMALLEST_PICTURE: Final = 32 * 32
"""Pixels of a picture on which there may be something."""

_LEAST_PICTURE: Final = 1024
"""Bytes to which the data of such a picture are packed at least, beside one for each ``_OF_ONE_COLOUR``."""

_OF_ONE_COLOUR: Final = 150

_CHUNK: Final = 64 * 1024

_DEPTH: Final = 3
"""The depth to which forms within forms are read."""

_PASSED_OVER: Final = frozenset(
    ("/Parent", "/P", "/Contents", "/Resources", "/AP", "/Metadata", "/StructTreeRoot", "/Dest", "/D")
)
"""Parts in which no action can stand, and the ways back."""

_ACTIONS: Final = {
    "/JavaScript": ActivePart.JAVASCRIPT,
    **dict.fromkeys(("/Launch", "/SubmitForm", "/ImportData", "/Rendition"), ActivePart.ACTION),
    **dict.fromkeys(("/GoToR", "/URI"), ActivePart.LINK),
    "/GoToE": ActivePart.ATTACHMENT,
}
"""By the type of an action. The others, such as a jump to a page, do nothing beyond the document."""

_KEYS: Final = {"/JS": ActivePart.JAVASCRIPT, "/EF": ActivePart.ATTACHMENT, "/XFA": ActivePart.JAVASCRIPT}


def inspect_pdf(path: Path) -> tuple[ContentProblem | None, int | None, tuple[ActivePart, ...]]:
    """Return the document's fault, if any, its number of pages, and each active part once."""
    if not _has_end(path):
        return ContentProblem.DAMAGED, None, ()
    try:
        with PdfReader(path) as reader:
            if reader.is_encrypted:
                return ContentProblem.ENCRYPTED, None, ()
            pages = sum(1 for page in reader.pages if page is not None)
            return (None, pages, _active_parts(reader)) if pages else (ContentProblem.DAMAGED, 0, ())
    except Exception:  # a hostile file makes the reader fail in any way there is
        return ContentProblem.DAMAGED, None, ()


def _has_end(path: Path) -> bool:
    """Tell whether the cross-reference table and the end are named, which a truncated file lacks."""
    with path.open("rb") as file:
        file.seek(-min(_END_WITHIN, file.seek(0, os.SEEK_END)), os.SEEK_END)
        tail = file.read()
    return b"startxref" in tail and b"%%EOF" in tail


def _active_parts(reader: PdfReader) -> tuple[ActivePart, ...]:
    found: set[ActivePart] = set()
    try:
        for number, item in enumerate(_dictionaries(reader.trailer.get("/Root"))):
            if number == _OBJECTS:
                found.add(ActivePart.UNCLEAR)
                break
            found |= {part for key, part in _KEYS.items() if key in item}
            action = item.get("/S")
            if isinstance(action, str) and action in _ACTIONS:
                found.add(_ACTIONS[action])
            if item.get("/Subtype") == "/FileAttachment":
                found.add(ActivePart.ATTACHMENT)
        # All pages are read: one that cannot be read makes the document unclear.
        forms = set[int]()
        if not sum(_shows_something(page, forms) for page in reader.pages):
            found.add(ActivePart.BLANK)
    except Exception:  # as above
        found.add(ActivePart.UNCLEAR)
    return tuple(part for part in ActivePart if part in found)


def _dictionaries(root: Any) -> Iterator[DictionaryObject]:
    waiting, seen = [root], set[tuple[int, int]]()
    while waiting:
        item = waiting.pop()
        if isinstance(item, IndirectObject):
            place = (item.idnum, item.generation)
            if place in seen:
                continue
            seen.add(place)
            item = item.get_object()
        if isinstance(item, DictionaryObject):
            yield item
            waiting += [item.raw_get(key) for key in item if key not in _PASSED_OVER]
        elif isinstance(item, ArrayObject):
            waiting += list.__iter__(item)


def _shows_something(page: PageObject, forms: set[int]) -> bool:
    contents = page.get_contents()
    if any("/AP" in note.get_object() for note in page.get("/Annots", ArrayObject()).get_object()):
        return True
    return contents is not None and _draws(contents.get_data(), page.get("/Resources"), _DEPTH, forms)


def _draws(operators: bytes, resources: Any, depth: int, forms: set[int]) -> bool:
    """Tell whether there is a text, a picture of more than one colour, or more than a few lines in any colour.

    ``forms`` are those that were read; none is read again, however often the document names it.
    """
    if _TEXT.search(operators) or len(_DRAWN.findall(operators)) >= _FEW:
        return True
    named = resources.get_object().get("/XObject") if resources is not None and b"Do" in operators else None
    for item in (each.get_object() for each in (named.get_object().values() if named is not None else ())):
        if not isinstance(item, StreamObject) or id(item) in forms:
            continue
        forms.add(id(item))
        if item.get("/Subtype") != "/Form":
            pixels = int(item.get("/Width", 0)) * int(item.get("/Height", 0))
            if pixels >= _SMALLEST_PICTURE and _is_manifold(item._data):
                return True
        elif depth and _draws(item.get_data(), item.get("/Resources") or resources, depth - 1, forms):
            return True
    return False


def _is_manifold(picture: bytes) -> bool:
    packer, left = zlib.compressobj(1), _LEAST_PICTURE + len(picture) // _OF_ONE_COLOUR
    for start in range(0, len(picture), _CHUNK):
        left -= len(packer.compress(picture[start : start + _CHUNK]))
        if left <= 0:
            return True
    return left <= len(packer.flush())
