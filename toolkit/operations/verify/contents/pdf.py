"""Inspect PDFs: whole, with pages, open to anybody. Nothing in them is executed or rendered."""

import os
from pathlib import Path
from typing import Final

from pypdf import PdfReader

from toolkit.domain.contents import ContentProblem

_END_WITHIN: Final = 2048
"""Bytes from the end in which a PDF names its end; readers tolerate as much after it."""


def inspect_pdf(path: Path) -> tuple[ContentProblem | None, int | None]:
    """Return the document's fault, if any, and its number of pages."""
    if not _has_end(path):
        return ContentProblem.DAMAGED, None
    try:
        with PdfReader(path) as reader:
            if reader.is_encrypted:
                return ContentProblem.ENCRYPTED, None
            pages = sum(1 for page in reader.pages if page is not None)
    except Exception:  # a hostile file makes the reader fail in any way there is
        return ContentProblem.DAMAGED, None
    return (None, pages) if pages else (ContentProblem.DAMAGED, 0)


def _has_end(path: Path) -> bool:
    """Tell whether the cross-reference table and the end are named, which a truncated file lacks."""
    with path.open("rb") as file:
        file.seek(-min(_END_WITHIN, file.seek(0, os.SEEK_END)), os.SEEK_END)
        tail = file.read()
    return b"startxref" in tail and b"%%EOF" in tail
