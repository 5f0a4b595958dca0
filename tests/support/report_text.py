"""Everything that a file of a report holds as one text: what people see, and what lies beneath it."""

import base64
import json
import re
import zlib
from collections import defaultdict
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
    """The records, events and findings of its first sales by the place of the sale."""
    cases = defaultdict(lambda: {"records": [], "events": [], "findings": []})
    for packed in _PACKED.findall(page)[1:]:
        for name, columns in json.loads(_unpacked(packed)).items():
            for values in zip(*columns.values(), strict=True):
                row = dict(zip(columns, values, strict=True))
                cases[row["sale"]][name].append(row)
    return cases


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
