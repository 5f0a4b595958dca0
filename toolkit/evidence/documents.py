"""Inspect PDFs: whole, with pages, open to anybody; what they do by themselves; whether anything can be seen.

pdfium, which draws PDFs in Chrome, draws their pages small until one of them shows something. pypdf reads what
they can do. Nothing in them is executed or followed.
"""

import hashlib
import io
import mmap
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np
import pypdfium2
from pypdf import PageObject, PdfReader
from pypdf.generic import ArrayObject, DictionaryObject, IndirectObject, NameObject, NullObject, StreamObject

from toolkit.contract.contents import ActivePart, ContentProblem, Depth
from toolkit.evidence.kinds import PDF, Inspected

DRAWING_SECONDS: Final = 20  # of the processor, after which no further page is drawn; the whole inspection has 60
PAGES_DRAWN: Final = 500  # pages that are drawn, one after the other, until one of them shows something
_END_WITHIN: Final = 2048  # bytes from the end in which a PDF names its end; readers tolerate as much after it
_HOLE: Final = bytes(64 * 1024)  # zeros in a row: a part of the file that never arrived
_AROUND: Final = 64  # bytes before and after a document that are nothing yet
_OBJECTS: Final = 500_000  # objects that are looked at; a document with more is told to be unclear
_LONGEST_SIDE: Final = 1200  # pixels of the longer side of a drawn page at most; A4 has 842
_CONTRAST: Final = 32  # levels of 255 by which a pixel differs from the most of its page when it can be seen
_SEEN: Final = 24  # pixels that a page shows at least: a short word in small print has more
_MARGIN: Final = 16  # part of a page's height, at its head and its foot, in which a page number stands: a 16th
_DEPTH: Final = 3  # the depth to which pictures within pictures are read
_PICTURES: Final = 10_000  # pictures of a page that are read; a page with more has no normal form

_PASSED_OVER: Final = frozenset(
    ("/Parent", "/P", "/Contents", "/Resources", "/AP", "/Metadata", "/StructTreeRoot", "/Dest")
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


def inspect_document(path: Path) -> Inspected:
    """Look at a PDF; each active part is told once."""
    found, damaged = _around(path), Inspected(PDF, ContentProblem.DAMAGED, depth=Depth.DRAWN)
    if found is None:
        return damaged
    try:
        with path.open("rb") as file, pypdfium2.PdfDocument(file) as document:
            pages = len(document)
            if not pages:
                return replace(damaged, pages=0)
            shown = _shows_something(document)
            readable = _without_password(document, path)
    except pypdfium2.PdfiumError:
        return replace(damaged, problem=ContentProblem.ENCRYPTED) if _is_encrypted(path) else damaged
    if shown is not True:
        found.add(ActivePart.UNCLEAR if shown is None else ActivePart.BLANK)
    form, looked = None, False
    try:
        with PdfReader(readable) as reader:
            _find_active_parts(reader, found)
            if len(reader.pages) < pages:
                found.add(ActivePart.UNCLEAR)
            looked = True
            form = _normal_form(reader)
    except Exception:  # a hostile file makes the reader fail in any way there is
        found |= set() if looked else {ActivePart.UNCLEAR}
    depth = Depth.PART if shown is None else Depth.DRAWN
    parts = tuple(part for part in ActivePart if part in found)
    return Inspected(PDF, None, pages, normal_form=form, active_parts=parts, depth=depth)


def _is_encrypted(path: Path) -> bool:
    """Tell why it does not open; the reason that pdfium gives may be that of the file before."""
    try:
        with PdfReader(path) as reader:
            return reader.is_encrypted
    except NotImplementedError:  # by certificates, or in a way that pypdf does not know
        return True
    except Exception:  # as below
        return False


def _around(path: Path) -> set[ActivePart] | None:
    """Return what stands before and behind the document, ``None`` where its end is missing."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        end = data.rfind(b"%%EOF")
        behind = data[end + 5 :]
        named = data.rfind(b"startxref", max(0, end - _END_WITHIN), max(0, end))
        if named < 0 or re.search(rb"\d obj\b", behind):
            return None
        start, last = max(0, data.find(b"%PDF-")), data.rfind(b"%PDF-", 0, end)
        place = re.match(rb"\s+(\d{1,12})", data[named + 9 : named + 40])
        at = last + int(place[1]) if place else 0
        if re.match(rb"xref|\d+ \d+ obj\b", data[at : at + 40]):
            start = last  # the end is that of another document, which stands behind a whole one
        before = data[: min(start, _END_WITHIN)]
        found = {ActivePart.UNCLEAR} if data.find(_HOLE, 0, end) >= 0 else set()
    appended = max(len(before.strip()), len(behind.strip(b"\0 \r\n\t"))) > _AROUND
    return found | {ActivePart.APPENDED} if appended else found


def _without_password(document: Any, path: Path) -> Path | io.BytesIO:
    """Return the document without its encryption: one that is encrypted for its owner only opens to anybody."""
    if pypdfium2.raw.FPDF_GetSecurityHandlerRevision(document.raw) < 0:
        return path
    plain = io.BytesIO()
    document.save(plain, flags=pypdfium2.raw.FPDF_REMOVE_SECURITY)
    return plain


def _shows_something(document: Any) -> bool | None:
    """Draw one page after the other; ``None`` where the time was over before one showed anything.

    What stands in the margins above and below is no contract: a page number, a head.
    """
    ends, unreadable = time.process_time() + DRAWING_SECONDS, 0
    document.init_forms()
    for number in range(len(document)):
        if number == PAGES_DRAWN or time.process_time() >= ends:
            return None
        try:
            page = document[number]
            scale = min(1.0, _LONGEST_SIDE / max(page.get_size()))
            bitmap = page.render(scale=scale, grayscale=True)
            pixels = bitmap.to_numpy().reshape(bitmap.height, -1)[:, : bitmap.width]
        except pypdfium2.PdfiumError:
            unreadable += 1
            continue
        paper = np.bincount(pixels.ravel(), minlength=256).argmax()
        margin = bitmap.height // _MARGIN
        pixels = pixels[margin : bitmap.height - margin]
        seen = np.count_nonzero(np.abs(pixels.astype(np.int16) - paper) > _CONTRAST)
        page.close()
        if seen >= _SEEN:
            return True
    return None if unreadable else False


def _find_active_parts(reader: PdfReader, found: set[ActivePart]) -> None:
    for number, item in enumerate(_dictionaries(reader.trailer.get("/Root"))):
        if number == _OBJECTS:
            found.add(ActivePart.UNCLEAR)
            return
        found |= {part for key, part in _KEYS.items() if key in item}
        action, subtype = (item.get(key, NullObject()).get_object() for key in ("/S", "/Subtype"))
        if isinstance(action, str) and action in _ACTIONS:
            found.add(_ACTIONS[action])
        if subtype == "/FileAttachment":
            found.add(ActivePart.ATTACHMENT)


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


def _normal_form(reader: PdfReader) -> str | None:
    """Return the SHA-256 of the contents of all pages, their pictures and notes, without metadata."""
    digest, something = hashlib.sha256(), False
    for page in reader.pages:
        contents = page.get_contents()
        text = contents.get_data() if contents is not None else b""
        digest.update(b"page %d" % len(text) + text)
        something = something or bool(text.strip())
        for number, picture in enumerate(chain(_pictures(page.get("/Resources"), _DEPTH), _notes(page))):
            if number == _PICTURES:
                return None
            digest.update(b"picture %d" % len(picture) + picture)
    return digest.hexdigest() if something else None


def _notes(page: PageObject) -> Iterator[bytes]:
    """Yield what is filled in or drawn over a page: two copies of one form differ in nothing else."""
    for reference in page.annotations or ():
        note = reference.get_object()
        filled = [note.get_inherited(name) for name in ("/V", "/AS", "/Contents")]
        if any(filled):
            yield repr(filled).encode()
        yield from _pictures(DictionaryObject({NameObject("/XObject"): note.get("/AP")}), _DEPTH)


def _pictures(resources: Any, depth: int) -> Iterator[bytes]:
    objects = resources.get_object().get("/XObject") if resources is not None and depth else None
    for _, reference in sorted((objects.get_object() if objects is not None else {}).items()):
        item = reference.get_object()
        if isinstance(item, StreamObject):
            masks = (item.get(name, NullObject()).get_object() for name in ("/SMask", "/Mask"))
            for each in (item, *masks):  # a mask may hold all that is seen
                if isinstance(each, StreamObject):
                    yield each._data  # noqa: SLF001  # the bytes as they are stored, which pypdf gives by no other name
            yield from _pictures(item.get("/Resources"), depth - 1)
