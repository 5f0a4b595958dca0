"""A stray cell in the last corner of a sheet must not take all memory."""

from pathlib import Path

import pytest
import xlsxwriter

from toolkit.errors import UnreadableFile
from toolkit.operations.spreadsheets import read_table
from toolkit.operations.spreadsheets.workbook_bounds import is_too_wide_apart


def workbook(path: Path, *cells: str) -> Path:
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet()
        for cell in cells:
            sheet.write_string(cell, "x")
    return path


@pytest.mark.parametrize("far", ["XFD1048576", "BZ1048576", "XFD5000"])
def test_cells_that_lie_too_far_apart_are_refused(far: str, tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match=r"far\.xlsx: its cells lie too far apart"):
        read_table(workbook(tmp_path / "far.xlsx", "A1", far))


@pytest.mark.parametrize("far", ["Z1048576", "XFD3000", "AZ900000", "B2"])
def test_a_large_sheet_is_no_reason(far: str, tmp_path: Path) -> None:
    assert not is_too_wide_apart(workbook(tmp_path / "large.xlsx", "A1", far).read_bytes())


def test_what_is_no_workbook_is_left_to_the_reader() -> None:
    assert not is_too_wide_apart(b"PK\x03\x04 and nothing more")
