"""Everything that a file of a report holds as one text: what people see, and what lies beneath it."""

import base64
import json
import re
import zlib
from zipfile import ZipFile

from pypdf import PdfReader
from pypdf.generic import IndirectObject, StreamObject


def everything_in(path):
    """The parts of a workbook, the objects, streams and texts of a PDF, the packed data of a page."""
    if path.suffix == ".xlsx":
        with ZipFile(path) as parts:
            return "\n".join(
                [*parts.namelist(), *(parts.read(name).decode("utf-8", "replace") for name in parts.namelist())]
            )
    if path.suffix == ".pdf":
        return _of_pdf(path)
    return _PACKED.sub(lambda packed: _unpacked(packed[0]), path.read_text(encoding="utf-8"))


def packed_data(page):
    """The sales that a page holds packed: its columns with their cells."""
    packed = _PACKED.search(page)
    assert packed
    return json.loads(_unpacked(packed[0]))


def packed_cases(page):
    """The cases of its first sales, in their order."""
    return [case for packed in _PACKED.findall(page)[1:] for case in json.loads(_unpacked(packed))]


_PACKED = re.compile('(?<= type="text/plain">)[^<]+')


def _unpacked(packed):
    return zlib.decompress(base64.b64decode(packed), -zlib.MAX_WBITS).decode("utf-8")


def _of_pdf(path):
    reader = PdfReader(path)
    found = [repr(reader.metadata), *(page.extract_text() for page in reader.pages)]
    for number in range(1, int(reader.trailer["/Size"])):
        each = IndirectObject(number, 0, reader).get_object()
        found.append(repr(each))
        if isinstance(each, StreamObject):
            found.append(each.get_data().decode("latin-1"))
    return "\n".join(found)
