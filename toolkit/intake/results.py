"""The analyst's options for a load, and the texts of its repairs and warnings."""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from toolkit.contract.clients import QualityWarning
from toolkit.contract.codes import LabelledEnum
from toolkit.contract.fields import pick_camel
from toolkit.intake.sources import Layout
from toolkit.language import ENGLISH, Language
from toolkit.message import Message


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


NUMBER_ROUNDED: Final = "NUMBER_ROUNDED"
"""A warning of our own: a spreadsheet shows a long number as 1,23E+10, and its last digits may be gone."""

WARNINGS: Final[Mapping[str, str]] = {
    **{str(kind): kind.text for kind in QualityWarning},
    NUMBER_ROUNDED: "a number in scientific notation; its last digits may be lost",
}
"""All warnings of a load, with a text for people."""


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """The options for reading and judging the files of a load.

    ``headings`` maps headings of the file to field names of the contract, before those that are known.
    """

    headings: Mapping[str, str] = field(default_factory=dict)
    sheet: str | None = None
    language: Language = ENGLISH
    """The language of the reasons in the workbook of rejected rows."""

    def deciding(self) -> dict[str, Any]:
        """Return the options that change what becomes of a row, as they are kept with a batch."""
        return {"headings": dict(sorted(self.headings.items())), "sheet": self.sheet}

    def fingerprint(self, sha256: str) -> str:
        """Return the fingerprint of a file with these contents, loaded with these options."""
        document = json.dumps([sha256, self.deciding()], sort_keys=True)
        return hashlib.sha256(document.encode()).hexdigest()


EXAMPLES: Final = 3
"""The number of places that are kept of each reason and warning."""


@dataclass(frozen=True, slots=True)
class Understood:
    """The recognised layout of a file, known before its rows are read."""

    source: str
    layout: Layout
    fields: Mapping[str, str]
    """Headings of the file, with the field that each stands for."""
    ignored: tuple[str, ...]
    """Headings of columns that are not loaded."""

    def __str__(self) -> str:
        used = ", ".join(
            heading if heading == name else f"{heading} = {name}" for heading, name in self.fields.items()
        )
        message = Message("{}: {}: {}", self.source, str(self.layout), used)
        return Message("{}; not used: {}", message, ", ".join(self.ignored)) if self.ignored else message


@dataclass
class Tally:
    """The counts of one file, as they grow."""

    accepted: int = 0
    rejected: int = 0
    skipped: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    """A row may have several."""
    repairs: Counter[str] = field(default_factory=Counter)
    """Of accepted rows only, as are the warnings."""
    warnings: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    """The first files and lines with each reason and warning."""

    @property
    def rows(self) -> int:
        """Rows without blank ones."""
        return self.accepted + self.rejected + self.skipped

    def all_there(self) -> None:
        """Count all good rows as skipped, because the file was loaded before."""
        self.skipped += self.accepted
        self.accepted = 0

    def add(self, counted: Counter[str], of: str, source: str, lines: Sequence[int]) -> None:
        """Count a reason or a warning in these lines of a file, and keep the first as examples."""
        counted[of] += len(lines)
        examples = self.examples.setdefault(of, [])
        examples += [(source, line) for line in lines[: EXAMPLES - len(examples)]]


@dataclass(frozen=True)
class FileLoaded:
    """The result for one file."""

    understood: Understood
    tally: Tally
    already_loaded_at: datetime | None = None
    """The time at which the same contents were loaded before; this call then changed nothing."""
    rejected_files: tuple[Path, ...] = ()
    skipped_file: Path | None = None
    notes: tuple[str, ...] = ()

    @property
    def source(self) -> str:
        """The file's name."""
        return self.understood.source


@dataclass
class LoadResult(Tally):
    """The result for all files, counted together; in a dry run, what loading each of them alone would give."""

    dry_run: bool = False
    files: tuple[FileLoaded, ...] = ()
    unreadable: tuple[str, ...] = ()
    """A sentence about each file that was not loaded because it cannot be read."""

    def __post_init__(self) -> None:
        """Count all files; of reasons, repairs and warnings the most frequent comes first."""
        for tally in (file.tally for file in self.files):
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
            "files": [
                {
                    "source": file.source,
                    "sha256": file.understood.layout.sha256,
                    "understood": str(file.understood),
                    **pick_camel(file.tally, "rows", "accepted", "rejected", "skipped"),
                    "alreadyLoadedAt": file.already_loaded_at and file.already_loaded_at.isoformat(),
                    "rejectedFiles": [str(path) for path in file.rejected_files],
                    "skippedFile": file.skipped_file and str(file.skipped_file),
                    "notes": list(file.notes),
                }
                for file in self.files
            ],
        }
