"""Find what a PDF can do by itself or lead to. Nothing is executed, decoded or followed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pypdf import PdfReader
from pypdf.generic import ArrayObject, DictionaryObject, IndirectObject

from toolkit.domain.contents import ActivePart

_OBJECTS: Final = 500_000
"""Objects that are looked at; a document with more is told to be unclear."""

_PASSED_OVER: Final = frozenset(
    ("/Parent", "/P", "/Contents", "/Resources", "/AP", "/Metadata", "/StructTreeRoot", "/Dest", "/D")
)
"""Parts in which no action can stand, and the ways back."""

_ACTIONS: Final = {
    "/JavaScript": ActivePart.JAVASCRIPT,
    "/Launch": ActivePart.ACTION,
    "/SubmitForm": ActivePart.ACTION,
    "/ImportData": ActivePart.ACTION,
    "/Rendition": ActivePart.ACTION,
    "/GoToR": ActivePart.LINK,
    "/GoToE": ActivePart.ATTACHMENT,
    "/URI": ActivePart.LINK,
}
"""By the type of an action. The others, such as a jump to a page, do nothing beyond the document."""

_KEYS: Final = {"/JS": ActivePart.JAVASCRIPT, "/EF": ActivePart.ATTACHMENT, "/XFA": ActivePart.JAVASCRIPT}


def active_parts(path: Path) -> tuple[ActivePart, ...]:
    """Return what is found in the objects that the document reaches, each once."""
    found: set[ActivePart] = set()
    try:
        with PdfReader(path) as reader:
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
    except Exception:  # a hostile file makes the reader fail in any way there is
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
