"""A chunk of a table's rows, column by column, and the recognised layout of its file."""

from __future__ import annotations

import gzip
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path, PurePath, PurePosixPath
from typing import IO, Final, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from toolkit.contract.fields import TRIMMED
from toolkit.errors import UnreadableFile
from toolkit.message import Message

Lines = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive rows of a table, blank ones left out, every cell as text.

    ``kinds`` has an array of ``CellKind`` for each column (by position) that holds more than text.
    ``faults`` has the reason for each row (by position) that is none: its cells cannot be told apart.
    ``size`` is how much of the source was read for it: bytes of a text file, rows of a workbook.
    """

    columns: Sequence[pa.StringArray]
    lines: Lines
    size: int
    kinds: Mapping[int, npt.NDArray[np.uint8]] = field(default_factory=dict)
    faults: Mapping[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.lines)

    def take(self, rows: npt.NDArray[np.int64], size: int = 0) -> Chunk:
        """Return only these rows, without keeping the memory of the others."""
        return Chunk(
            [column.take(pa.array(rows)) for column in self.columns],
            self.lines[rows],
            size,
            {column: kinds[rows] for column, kinds in self.kinds.items()},
        )


@dataclass(frozen=True, slots=True)
class Record:
    """One row as it is read: its line, that of the next, its cells, why they cannot be trusted if they cannot.

    ``kinds`` has the ``CellKind`` of each cell where they are not all text.
    """

    line: int
    next_line: int
    cells: Sequence[str]
    fault: str | None = None
    kinds: bytes = b""


def chunk_of(records: Iterable[Record], width: int, size: int) -> Chunk:
    """Return the records that are not blank as columns."""
    kept = [each for each in records if any(cell.strip(TRIMMED) for cell in each.cells)]
    rows = [[*each.cells, *[""] * (width - len(each.cells))] for each in kept]
    columns = [pa.array([row[place] for row in rows], pa.string()) for place in range(width)]
    kinds = [
        np.frombuffer(bytes(of), np.uint8) for of in zip(*(each.kinds[:width] for each in kept), strict=False)
    ]
    return Chunk(
        columns,
        np.array([each.line for each in kept], np.int64),
        size,
        kinds={place: of_column for place, of_column in enumerate(kinds) if of_column.any()},
        faults={row: each.fault for row, each in enumerate(kept) if each.fault is not None},
    )


Recognises = Callable[[Sequence[str]], bool]
"""Tells whether the cells of a row are the headings that the caller looks for."""


def any_cell(cells: Sequence[str]) -> bool:
    """Recognise the first row that is not blank as the headings."""
    return any(cell.strip() for cell in cells)


@dataclass(frozen=True, slots=True)
class Reading:
    """The properties of a file that a person states; ``None``: to be found out."""

    encoding: str | None = None
    delimiter: str | None = None
    sheet: str | None = None
    recognises: Recognises = any_cell


HEADING_ROWS: Final = 30
"""The number of rows from the top that are looked at for the headings; titles may stand above them."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The recognised layout of a file, known before its rows are read."""

    kind: str
    headings: tuple[str, ...]
    heading_line: int
    sha256: str
    """Of the uncompressed bytes."""
    size: int
    """Bytes of a text file, rows of a workbook."""
    encoding: str | None = None
    delimiter: str | None = None
    sheet: str | None = None

    @property
    def unit(self) -> str:
        """The unit of ``size``."""
        return "B" if self.kind == "text" else "rows"

    def __str__(self) -> str:
        if self.kind == "text":
            delimiter = {"\t": "tab"}.get(self.delimiter or "", f"“{self.delimiter}”")
            return Message(
                "text, {}, separated by {}, headings on line {}", self.encoding, delimiter, self.heading_line
            )
        return Message("workbook, sheet “{}”, headings on line {}", self.sheet, self.heading_line)


TEXT_SUFFIXES: Final = frozenset({".csv", ".txt", ".tsv", ".tab", ".psv"})
WORKBOOK_SUFFIXES: Final = frozenset({".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"})
OWN_SUFFIXES: Final = (".rejected.csv", ".rejected.xlsx", ".skipped.csv")
"""Endings of the files that a load writes; they are left out of a folder, and read where they are named."""

_ZIP: Final = b"PK\x03\x04"
_GZIP: Final = b"\x1f\x8b"
_OLE: Final = b"\xd0\xcf\x11\xe0"
_WORKBOOK_PARTS: Final = ("xl/workbook.xml", "xl/workbook.bin", "content.xml")


@dataclass(frozen=True, slots=True)
class TableSource:
    """One table: a file, what a gzip file holds, or a member of a zip archive."""

    path: Path
    member: str | None = None
    gzipped: bool = False
    workbook: bool = False
    folders: tuple[str, ...] = ()
    """Those that tell it from other files of the same name."""

    @property
    def name(self) -> str:
        """The name for people: the file name, with the member of an archive behind a slash."""
        return "/".join((*self.folders, self.path.name, *([] if self.member is None else [self.member])))

    @property
    def flat_name(self) -> str:
        """A file name of its own for what is written about it."""
        return self.name.replace("/", ".").replace("\\", ".")

    def stamp(self) -> tuple[int, int, int]:
        """Return the values that change when somebody writes the file: its size, its time, and its identity."""
        status = self.path.stat()
        return status.st_size, status.st_mtime_ns, status.st_ino

    def check_unchanged(self, stamp: tuple[int, int, int]) -> None:
        """Make sure that the file is still the one that had this ``stamp`` when it was understood.

        Raises:
            UnreadableFile: somebody wrote it meanwhile.
        """
        if self.stamp() != stamp:
            raise UnreadableFile("{}: was changed while it was read; try again.", self.name)

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """Open the file to read its uncompressed bytes.

        Raises:
            UnreadableFile: the file cannot be opened or its compression is damaged.
        """
        try:
            if self.member is not None:
                with zipfile.ZipFile(self.path) as archive, archive.open(self.member) as stream:
                    yield stream
            elif self.gzipped:
                with gzip.open(self.path, "rb") as unpacked:
                    yield cast("IO[bytes]", unpacked)
            else:
                with self.path.open("rb") as stream:
                    yield stream
        except (zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError, NotImplementedError) as error:
            raise UnreadableFile("{}: the archive is damaged ({}); ask for it again.", self.name, error) from None
        except RuntimeError as error:  # how zipfile says that a member is encrypted
            if "password" not in str(error):
                raise
            raise UnreadableFile("{}: protected by a password; save it without one.", self.name) from None


def find_sources(
    paths: Iterable[Path], pass_over: Callable[[UnreadableFile], None] | None = None
) -> list[TableSource]:
    """Return the tables that ``paths`` stand for, each once, in the order given; folders and archives by name.

    A folder stands for every spreadsheet in and below it, without hidden files and what a load has written.
    Where files have the same name, as many of their folders as it takes are part of it.
    ``pass_over`` is told of each file that cannot be read, and the others are found all the same.

    Raises:
        UnreadableFile: without ``pass_over``, nothing is there, or it is no spreadsheet, or damaged.
    """
    found: dict[tuple[Path, str | None], TableSource] = {}
    for file in chain.from_iterable(map(_files, paths)):
        try:
            sources = _of_file(file)
        except UnreadableFile as error:
            if pass_over is None:
                raise
            pass_over(error)
            continue
        for source in sources:
            found.setdefault((source.path.resolve(), source.member), source)
    return _told_apart(list(found.values()))


def _told_apart(sources: list[TableSource]) -> list[TableSource]:
    folders = [source.path.parent.resolve().parts for source in sources]
    for depth in range(1, max(map(len, folders), default=0)):
        named = Counter(source.flat_name for source in sources)
        sources = [
            replace(source, folders=parts[-depth:]) if named[source.flat_name] > 1 else source
            for source, parts in zip(sources, folders, strict=True)
        ]
    return sources


def _files(path: Path) -> list[Path]:
    """Return the spreadsheets in a folder; the path itself where it holds none, or is none."""
    return [file for file in sorted(path.rglob("*")) if _wanted(file, path)] or [path]


def _wanted(file: Path, folder: Path) -> bool:
    of_load = file.name.lower().endswith(OWN_SUFFIXES)
    return file.is_file() and not of_load and _is_table(file.relative_to(folder), {".gz", ".zip"})


def _of_file(path: Path) -> list[TableSource]:
    head = _head(path)
    if head.startswith(_GZIP):
        packed = TableSource(path, gzipped=True)
        return [replace(packed, workbook=_starts_as_workbook(packed))]
    if head.startswith(_OLE):
        return [TableSource(path, workbook=True)]
    if head.startswith(_ZIP):
        return _of_zip(path)
    return [TableSource(path)]


def _starts_as_workbook(source: TableSource) -> bool:
    with source.open() as stream:
        return stream.read(4) in (_OLE, _ZIP)


def _head(path: Path) -> bytes:
    if not path.exists():
        raise UnreadableFile("{}: no such file.", path)
    if path.is_dir():
        raise UnreadableFile("{}: no spreadsheet in this folder; expected .csv, .xlsx, .gz or .zip files.", path)
    if not path.is_file():  # a pipe could be read only once
        raise UnreadableFile("{}: is not a file; save the contents into one first.", path)
    try:
        with path.open("rb") as stream:
            return stream.read(4)
    except OSError as error:
        raise UnreadableFile("{}: cannot be read: {}.", path, error.strerror) from None


def _of_zip(path: Path) -> list[TableSource]:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except zipfile.BadZipFile:
        raise UnreadableFile("{}: the file is damaged or incomplete; ask for it again.", path) from None
    if any(part in names for part in _WORKBOOK_PARTS):
        return [TableSource(path, workbook=True)]
    members = [name for name in sorted(names) if _is_table(PurePosixPath(name))]
    if not members:
        raise UnreadableFile("{}: no spreadsheet in this archive; expected .csv or .xlsx files.", path)
    return [
        TableSource(path, name, workbook=PurePosixPath(name).suffix.lower() in WORKBOOK_SUFFIXES)
        for name in members
    ]


def _is_table(path: PurePath, packed: Set[str] = frozenset()) -> bool:
    """Tell whether the name is that of a spreadsheet, or ends as ``packed``, and nothing in the path is hidden."""
    hidden = any(part.startswith((".", "~$", "__MACOSX")) for part in path.parts)
    return not hidden and path.suffix.lower() in TEXT_SUFFIXES | WORKBOOK_SUFFIXES | packed
