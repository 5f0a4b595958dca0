"""Benchmark of workbooks: a good one in its bounded process and in this one, and what hostile ones take.

The floor reads the same cells in this process, without any bound: the bounded one may take 1.15 times as long at
scale 1. The start of its process, a tenth of a second, weighs in small files.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from statistics import median

import pyarrow as pa
import python_calamine
import xlsxwriter

from tests.benchmarks.timing import timed
from tests.client_rows import FIELDS, client
from tests.unit.test_workbook_bounds import BLANKS, FAR_APART, FIRST, book, cell
from toolkit.operations.spreadsheets import find_sources, open_table, workbook, workbook_process

_ROWS = 100_000
_TURNS = 3

_READ = """
import json, resource, sys, time
from pathlib import Path
from toolkit.errors import UnreadableFile
from toolkit.operations.spreadsheets import read_table
began = time.perf_counter()
try:
    said = f"{len(read_table(Path(sys.argv[1])).rows):,} rows read"
except UnreadableFile as error:
    said = str(error)
used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
print(json.dumps([time.perf_counter() - began, *(each.ru_maxrss / 1024 for each in used), said]))
"""


def main(scale: float) -> None:
    """Read 100,000 clients times ``scale`` in both ways by turns, then each hostile workbook."""
    with tempfile.TemporaryDirectory() as folder:
        _good(Path(folder), int(_ROWS * scale))
        _hostile(Path(folder), scale)


def _good(folder: Path, rows: int) -> None:
    path = folder / "clients.xlsx"
    with xlsxwriter.Workbook(path, {"constant_memory": True}) as made:
        sheet = made.add_worksheet()
        sheet.write_row(0, 0, FIELDS)
        for number in range(1, rows + 1):
            sheet.write_row(number, 0, list(client(number).values()))
    turns = [
        (timed(partial(_in_this_process, path)).cpu, timed(partial(_bounded, path)).cpu) for _ in range(_TURNS)
    ]
    floor, bounded = (median(each) for each in zip(*turns, strict=True))
    print(
        f"{rows:,} clients: in this process {floor:.2f} s, bounded {bounded:.2f} s, ratio {bounded / floor:.2f} "
        f"(of processor time; allowed 1.15), bounds {workbook.MEMORY_BYTES >> 30} GiB and {workbook.SECONDS} s"
    )


def _in_this_process(path: Path) -> None:
    found = python_calamine.load_workbook(io.BytesIO(path.read_bytes()))
    rows = list(found.get_sheet_by_index(0).iter_rows())
    for column in zip(*rows, strict=True):
        pa.array(list(map(workbook_process._text, column)), pa.string())


def _bounded(path: Path) -> None:
    [source] = find_sources([path])
    for _ in open_table(source).chunks():
        pass


def _hostile(folder: Path, scale: float) -> None:
    made: dict[str, tuple[Iterable[str | bytes], Iterable[bytes]]] = {
        **{name: (rows, ()) for name, rows in FAR_APART.items()},
        "padding": ([FIRST, *[BLANKS] * int(4_000 * scale)], ()),
        "shared strings": ([FIRST], [b"<si><t>x</t></si>" * 50_000] * int(2_000 * scale)),
        "many cells": ((f"<row>{cell() * 16}</row>" for _ in range(int(1_000_000 * scale))), ()),
    }
    for name, (rows, strings) in made.items():
        path = book(folder / "hostile.xlsx", rows, strings)
        run = subprocess.run([sys.executable, "-c", _READ, path], capture_output=True, text=True, check=True)
        seconds, own, child, said = json.loads(run.stdout)
        print(
            f"{name}: {path.stat().st_size / 1e6:.2f} MB, {seconds:.1f} s, memory {own:.0f} MiB, "
            f"and {child:.0f} MiB in the bounded process: {said}",
            flush=True,
        )
