"""The options and the results of a load: counts, and the files that come back.

Rejected rows come back to be corrected, clients who were registered already are listed. Both hold personal data,
so only their owner may read them. They are written in a private folder beside their place and moved there when
the load has succeeded; what a killed load has left is removed by the next.
"""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.atomic_files import PrivateFolder, sync
from toolkit.contract.fields import pick_camel
from toolkit.errors import InvalidField, InvalidInput
from toolkit.intake.sources import OWN, REJECTED_SHEET, Chunk, Layout, Mask, escape, harmless
from toolkit.intake.workbook_writer import Cells, Form, SheetLooks, Style, Workbook
from toolkit.language import ENGLISH, Language
from toolkit.message import LabelledEnum, Message


class Repair(LabelledEnum):
    """A change to a cell that certainly gives the value that was meant."""

    WHITE_SPACE = "white_space", "white space around a cell removed"
    CPF_MASK = "cpf_mask", "mask of a CPF removed"
    CPF_ZEROS = "cpf_zeros", "leading zeros of a CPF restored"
    CEP_MASK = "cep_mask", "mask of a CEP removed"
    CEP_ZEROS = "cep_zeros", "leading zero of a CEP restored"
    PHONE_MASK = "phone_mask", "mask of a phone number removed"
    PHONE_COUNTRY_CODE = "phone_country_code", "country code 55 of a phone number removed"
    DATE_DAY_FIRST = "date_day_first", "date written dd/mm/yyyy rewritten"
    DATE_MIDNIGHT = "date_midnight", "midnight after a date removed"
    EXCEL_DATE = "excel_date", "Excel's day number rewritten as a date"


EXAMPLES: Final = 3  # the number of places that are kept of each reason and warning


@dataclass
class Tally:
    """Counts, as they grow."""

    accepted: int = 0
    rejected: int = 0
    skipped: int = 0
    reasons: Counter[str] = field(default_factory=Counter)  # a row may have several
    repairs: Counter[str] = field(default_factory=Counter)  # of accepted rows only, as are the warnings
    warnings: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    """The first files and lines with each reason and warning."""

    @property
    def rows(self) -> int:
        """Rows without blank ones."""
        return self.accepted + self.rejected + self.skipped


@dataclass(kw_only=True)
class FileLoaded(Tally):
    """The result for one file; its layout is known before its rows are read."""

    source: str
    layout: Layout
    understood: str  # the sentence about how the file was read
    already_loaded_at: datetime | None = None  # when these contents were loaded before; then nothing changed
    rejected_files: tuple[Path, ...] = ()
    skipped_file: Path | None = None
    notes: tuple[str, ...] = ()

    def add(self, counted: Counter[str], of: str, lines: Sequence[int]) -> None:
        """Count a reason or a warning in these lines, and keep the first as examples."""
        counted[of] += len(lines)
        examples = self.examples.setdefault(of, [])
        examples += [(self.source, line) for line in lines[: EXAMPLES - len(examples)]]


@dataclass
class LoadResult(Tally):
    """The result for all files, counted together; in a dry run, what loading each of them alone would give."""

    dry_run: bool = False
    files: tuple[FileLoaded, ...] = ()
    unreadable: tuple[str, ...] = ()  # a sentence about each file that was not loaded because it cannot be read

    def __post_init__(self) -> None:
        """Count all files; of reasons, repairs and warnings the most frequent comes first."""
        for tally in self.files:
            self.accepted += tally.accepted
            self.rejected += tally.rejected
            self.skipped += tally.skipped
            self.reasons += tally.reasons
            self.repairs += tally.repairs
            self.warnings += tally.warnings
            for of, examples in tally.examples.items():
                self.examples[of] = [*self.examples.get(of, []), *examples][:EXAMPLES]
        counts = (self.reasons, self.repairs, self.warnings)
        self.reasons, self.repairs, self.warnings = (Counter(dict(each.most_common())) for each in counts)

    @property
    def rejected_files(self) -> list[Path]:
        """The files of rejected rows."""
        return [path for file in self.files for path in file.rejected_files]

    def document(self) -> dict[str, Any]:
        """Return all of it for machines, under the names of the command line's JSON."""
        return {
            **pick_camel(
                self, "dry_run", "rows", "accepted", "rejected", "skipped", "reasons", "repairs", "warnings"
            ),
            "rejectedFiles": [str(path) for path in self.rejected_files],
            "unreadable": list(self.unreadable),
        }


_WHY_WIDE: Final = 60
_WIDEST: Final = 40  # characters that a column of the workbook shows at most without wrapping or widening


class Outputs(AbstractContextManager["Outputs"]):
    """The files written about one source, under ``folder``; a context manager that removes unpublished ones.

    What writes raises ``InvalidInput`` where the folder cannot be written, or its disk is full.
    """

    def __init__(
        self,
        folder: Path,
        source: str,
        delimiter: str | None,
        headings: Sequence[str],
        fields: Mapping[str, int],
        language: Language = ENGLISH,
    ) -> None:
        """Write them with the headings of the source; ``fields`` says in which column each field is."""
        self._folder, self._source, self._delimiter = folder, source, delimiter or ";"
        self._headings, self._fields, self._language = tuple(headings), fields, language
        self._place: PrivateFolder | None = None
        self._rejected: tuple[_CsvFile, Workbook] | None = None
        self._skipped: _CsvFile | None = None

    def __exit__(self, *_: object) -> None:
        for file in self._files():
            with suppress(OSError):
                file.close()
        if self._place is not None:
            self._place.remove()

    def reject(self, chunk: Chunk, invalid: Mapping[int, Sequence[InvalidField]]) -> None:
        """Add the rows of a chunk that are invalid, as they are in the source; their errors are given by line."""
        chunk = chunk.take(np.flatnonzero(np.isin(chunk.lines, list(invalid))))
        if not len(chunk):
            return
        errors = [invalid[line] for line in chunk.lines.tolist()]
        line, why = pa.array(chunk.lines).cast(pa.string()), self._reasons(errors, str)
        wrong: defaultdict[int | None, Mask] = defaultdict(lambda: np.zeros(len(chunk), dtype=bool))
        for row, found in enumerate(errors):
            for error in found:
                wrong[self._fields.get(error.field)][row] = True
        with self._advising():
            if self._rejected is None:
                self._rejected = self._begin_rejected([why, line, *chunk.columns])
            text, workbook = self._rejected
            written = [escape(column).to_pylist() for column in (*chunk.columns, line, why)]
            text.add(zip(*written, strict=True))
            cells = [
                Cells(
                    column,
                    forms={Form.NUMBER: chunk.numbers[place]} if place in chunk.numbers else {},
                    styles={Style.RED: wrong[place]} if place in wrong else {},
                )
                for place, column in enumerate(chunk.columns)
            ]
            reasons = Cells(self._reasons(errors, self._language.tell), style=Style.WRAPPED)
            workbook.add([reasons, Cells(line, Form.NUMBER), *cells])

    def _reasons(self, errors: Sequence[Sequence[InvalidField]], say: Callable[[str], str]) -> pa.StringArray:
        """Return the errors of each row in one text, under the headings of the source."""
        say = cache(say)
        headings = {field: self._headings[position] for field, position in self._fields.items()}

        def named(field: str) -> str:
            return headings.get(field) or (say(field) if isinstance(field, Message) else field)

        return pa.array(
            ["; ".join(f"{named(error.field)}: {say(error.message)}" for error in found) for found in errors],
            pa.string(),
        )

    def skip(self, client_ids: Mapping[int, UUID | None]) -> None:
        """Write the lines whose client is registered already, with the client's id where there is one yet."""
        with self._advising():
            self._skipped = _CsvFile(self._private() / "skipped.csv", ("line", "clientId"), ";")
            self._skipped.add(client_ids.items())

    def complete(self) -> None:
        """Write everything out, so that a full disk shows before the rows are committed."""
        with self._advising():
            for file in self._files():
                file.close()
                sync(file.path)

    @property
    def notes(self) -> tuple[str, ...]:
        """Say why there is no workbook of the rejected rows, if there is none."""
        problem = self._rejected and self._rejected[1].problem
        return (f"No .rejected.xlsx: {problem}; use the .rejected.csv.",) if problem else ()

    def publish(self) -> tuple[tuple[Path, ...], Path | None]:
        """Move the files to their places: those of rejected rows, and the one of skipped rows."""
        rejected = (self._rejected or ())[: 1 if self.notes else 2]
        return tuple(map(self._move, rejected)), self._move(self._skipped) if self._skipped else None

    @contextmanager
    def _advising(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise InvalidInput(
                "{}: rejected and skipped rows cannot be written there ({}); nothing was loaded. Make room, "
                "or choose another folder by --out.",
                self._folder,
                error.strerror,
            ) from None

    def _begin_rejected(self, columns: Sequence[pa.StringArray]) -> tuple[_CsvFile, Workbook]:
        """Begin the table for programs, and the workbook for people in their language, the reasons first."""
        place = self._private()
        headings = [harmless(heading) for heading in (*self._headings, *OWN)]
        workbook = Workbook(place / "rejected.xlsx")
        first = (*reversed(OWN), *self._headings)
        longest = (pc.max(pc.utf8_length(column)).as_py() or 0 for column in columns)
        widths = [min(max(cell, len(heading)) + 3, _WIDEST) for heading, cell in zip(first, longest, strict=True)]
        workbook.begin_sheet(REJECTED_SHEET, SheetLooks([_WHY_WIDE, *widths[1:]], 2))
        workbook.add_row(*first, style=Style.HEADING)
        return _CsvFile(place / "rejected.csv", headings, self._delimiter), workbook

    def _private(self) -> Path:
        if self._place is None:
            self._place = PrivateFolder(self._folder)
        return self._place.path

    def _files(self) -> list[_CsvFile | Workbook]:
        return [file for file in (*(self._rejected or ()), self._skipped) if file is not None]

    def _move(self, file: _CsvFile | Workbook) -> Path:
        assert self._place is not None
        return self._place.publish(file.path, f"{self._source}.{file.path.name}")


class _CsvFile:
    """A CSV file that Excel opens: UTF-8 with a byte order mark."""

    def __init__(self, path: Path, headings: Iterable[object], delimiter: str) -> None:
        self.path = path
        stream = path.open("x", encoding="utf-8-sig", newline="")
        writer = csv.writer(stream, delimiter=delimiter)
        writer.writerow(headings)
        self.add, self.close = writer.writerows, stream.close
