"""Everything that a file of a report holds as one text: what people see, and what lies beneath it."""

from __future__ import annotations

import base64
import re
import zlib
from pathlib import Path
from zipfile import ZipFile

from pypdf import PdfReader
from pypdf.generic import IndirectObject, StreamObject


def everything_in(path: Path) -> str:
    """The parts of a workbook, the objects, streams and texts of a PDF, the packed data of a page."""
    if path.suffix == ".xlsx":
        with ZipFile(path) as parts:
            return "\n".join(
                [*parts.namelist(), *(parts.read(name).decode("utf-8", "replace") for name in parts.namelist())]
            )
    if path.suffix == ".pdf":
        return _of_pdf(path)
    text = path.read_text(encoding="utf-8")
    for packed in re.findall(r"[A-Za-z0-9+/]{200,}={0,2}", text) if path.suffix == ".html" else ():
        text += zlib.decompress(base64.b64decode(packed), -zlib.MAX_WBITS).decode("utf-8")
    return text


def _of_pdf(path: Path) -> str:
    reader = PdfReader(path)
    found = [repr(reader.metadata), *(page.extract_text() for page in reader.pages)]
    for number in range(1, int(reader.trailer["/Size"])):
        each = IndirectObject(number, 0, reader).get_object()
        found.append(repr(each))
        if isinstance(each, StreamObject):
            found.append(each.get_data().decode("latin-1"))
    return "\n".join(found)
