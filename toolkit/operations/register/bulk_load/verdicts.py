"""Judge a chunk of rows: find the values to register, the reasons of rejected rows, and the repairs.

Whole columns are judged first (``columns``). The cells that are not surely valid are repaired and handed to
the contract's own rules one by one, which alone write the reasons.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.domain.fields import TRIMMED
from toolkit.domain.quality import AREA_CODES, UNASSIGNED_CEP, QualityWarning, oldest_birthdate
from toolkit.errors import InvalidField
from toolkit.operations.register.bulk_load.columns import Judged, judge
from toolkit.operations.register.bulk_load.fields import FIELD, FIELD_OF, FIELDS, Field, Invalid
from toolkit.operations.register.bulk_load.options import (
    NUMBER_ROUNDED,
    WARNED_FIELD,
    WARNINGS,
    LoadOptions,
    Repair,
)
from toolkit.operations.register.bulk_load.repairs import NUMBERS, repair
from toolkit.operations.spreadsheets import CellKind, Chunk
from toolkit.operations.spreadsheets.text_bytes import Mask, mask_of, values

ROW: Final = "row"
"""Stands for the field where the whole row is at fault."""


@dataclass(frozen=True, slots=True)
class ChunkVerdict:
    """The verdict on the rows of a chunk, by position.

    ``values`` has the normalised column of each field (by database column name), of use where ``accepted``.
    ``errors`` has every reason for each row that is not.
    """

    values: Mapping[str, pa.StringArray]
    accepted: Mask
    errors: Mapping[int, Sequence[InvalidField]]
    repairs: Mapping[Repair, int]
    warnings: Mapping[str, Mask]


Misfits = Callable[[Mapping[str, pa.StringArray]], Iterable[tuple[str, Mask, str]]]
"""Finds the values that the service's own columns do not take: the column, the rows, and the reason."""


def decide(
    chunk: Chunk, columns: Mapping[str, int], options: LoadOptions, today: date, misfits: Misfits = lambda _: ()
) -> ChunkVerdict:
    """Judge the rows of ``chunk``; ``columns`` says which of its columns holds which field."""
    size = len(chunk)
    errors: dict[int, list[InvalidField]] = {
        row: [InvalidField(ROW, reason)] for row, reason in chunk.faults.items()
    }
    faulty = np.zeros(size, dtype=bool)
    faulty[list(chunk.faults)] = True
    settled: dict[str, pa.StringArray] = {}
    repairs: list[tuple[Repair, Mask]] = []
    for field in FIELDS:
        if field.name not in columns:
            settled[field.column] = pa.nulls(size, pa.string())
            continue
        column = _Column(field, chunk, columns[field.name], options)
        settled[field.column] = column.settle(~faulty)
        repairs.extend(column.repairs.items())
        for row, reason in column.errors:
            errors.setdefault(row, []).append(InvalidField(field.name, reason))
    accepted = np.ones(size, dtype=bool)
    accepted[list(errors)] = False
    for name, mask, reason in misfits(settled):
        for row in np.flatnonzero(mask & accepted).tolist():
            errors.setdefault(row, []).append(InvalidField(FIELD_OF[name].name, reason))
    accepted[list(errors)] = False
    warnings = {kind: mask & accepted for kind, mask in _warnings(settled, today) if (mask & accepted).any()}
    if options.warnings_as_errors:
        for kind, mask in warnings.items():
            accepted &= ~mask
            for row in np.flatnonzero(mask).tolist():
                errors.setdefault(row, []).append(_as_error(kind))
    return ChunkVerdict(settled, accepted, errors, _counted(repairs, accepted), warnings)


def _counted(repairs: Sequence[tuple[Repair, Mask]], accepted: Mask) -> dict[Repair, int]:
    counts: Counter[Repair] = Counter()
    for repair_made, cells in repairs:
        counts[repair_made] += int((cells & accepted).sum())
    return dict(+counts)


class _Column:
    """One field of a chunk: settled by columns where that is sure, cell by cell where not."""

    def __init__(self, field: Field, chunk: Chunk, position: int, options: LoadOptions) -> None:
        self.field, self.options = field, options
        self.cells = chunk.columns[position]
        self.kinds = chunk.kinds.get(position)
        may_pad = None if self.kinds is None else np.isin(self.kinds, NUMBERS)
        if options.pad_cpf:
            may_pad = np.ones(len(chunk), dtype=bool)
        self.judged = judge(field, self.cells, strict=options.strict, may_pad=may_pad)
        if self.kinds is not None and (self.kinds == CellKind.ERROR).any():
            self.judged = _without(self.judged, self.kinds == CellKind.ERROR)
        self.repairs: dict[Repair, Mask] = {
            kind: mask & self.judged.sure for kind, mask in self.judged.repairs.items()
        }
        self.errors: list[tuple[int, str]] = []

    def settle(self, wanted: Mask) -> pa.StringArray:
        """Return the values; the reasons against cells and the repairs are in ``errors`` and ``repairs``."""
        unsure = wanted & ~self.judged.sure
        if not unsure.any():
            return self.judged.values
        if self.judged.alike is not None:
            self._refuse(np.flatnonzero(unsure & self.judged.alike).tolist())
            unsure &= ~self.judged.alike
        rows = np.flatnonzero(unsure)
        texts = self.cells.take(pa.array(rows)).to_pylist()
        found = [self._settle_cell(row, text) for row, text in zip(rows.tolist(), texts, strict=True)]
        return pc.replace_with_mask(self.judged.values, pa.array(unsure), pa.array(found, pa.string()))

    def _refuse(self, alike: Sequence[int]) -> None:
        """Ask the contract for the reason against one of these cells, which holds for all of them."""
        if alike:
            self._settle_cell(alike[0], self.cells[alike[0]].as_py())
            _, reason = self.errors[-1]
            self.errors += [(row, reason) for row in alike[1:]]

    def _settle_cell(self, row: int, text: str) -> str | None:
        kind = CellKind.TEXT if self.kinds is None else CellKind(self.kinds[row])
        if kind is CellKind.ERROR:
            self.errors.append((row, _IS_ERROR))
            return None
        repaired, done = repair(self.field.name, text, kind, self.options)
        try:
            value = self.field.check(repaired if repaired.strip(TRIMMED) else None)
        except Invalid as invalid:
            self.errors.append((row, str(invalid)))
            return None
        for kind_of_repair in done:
            self.repairs.setdefault(kind_of_repair, np.zeros(len(self.cells), dtype=bool))[row] = True
        return value


_IS_ERROR: Final = "Holds an error of a formula instead of a value"


def _without(judged: Judged, cells: Mask) -> Judged:
    """Return the same without errors and repairs for these cells."""
    return replace(
        judged, sure=judged.sure & ~cells, alike=None if judged.alike is None else judged.alike & ~cells
    )


_NUMBERS: Final = tuple(
    FIELD[name] for name in ("externalId", "rg", "numberOnDealership", "enrollment", "address.installationNumber")
)
"""Fields of mostly digits, which a spreadsheet may have shortened."""

_ROUNDED: Final = r"^[0-9]+([.,][0-9]+)?[Ee]\+?[0-9]+$"


def _warnings(settled: Mapping[str, pa.StringArray], today: date) -> Iterator[tuple[str, Mask]]:
    """Yield each data-quality warning with the rows it applies to (contract-wise they are fine)."""
    area_code = pc.utf8_slice_codeunits(settled["phone_number"], 0, 2)
    known = pc.is_in(area_code, value_set=pa.array(sorted(AREA_CODES)))
    yield QualityWarning.AREA_CODE_UNKNOWN, mask_of(pc.and_(pc.is_valid(area_code), pc.invert(known)))
    cep = settled["zip_code"]
    low, high = UNASSIGNED_CEP
    yield QualityWarning.CEP_UNASSIGNED, mask_of(pc.and_(pc.greater_equal(cep, low), pc.less_equal(cep, high)))
    birthdate = settled["birthdate"]
    yield QualityWarning.BIRTHDATE_IN_FUTURE, mask_of(pc.greater(birthdate, today.isoformat()))
    yield QualityWarning.BIRTHDATE_TOO_OLD, mask_of(pc.less(birthdate, oldest_birthdate(today).isoformat()))
    rounded = np.zeros(len(cep), dtype=bool)
    for field in _NUMBERS:
        column = settled[field.column]
        if (values(column) == ord("+")).any():
            rounded |= mask_of(pc.match_substring_regex(column, _ROUNDED))
    yield NUMBER_ROUNDED, rounded


def _as_error(kind: str) -> InvalidField:
    name = WARNED_FIELD.get(kind, ROW)
    return InvalidField(name, WARNINGS[kind].removeprefix(f"{name.rpartition('.')[2]} "))
