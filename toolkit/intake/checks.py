"""Check rows of clients by whole columns, and repair the cells whose meaning is certain.

Each field has one rule here: its repairs, in their order, and the values that are surely valid. A cell that is not
surely valid after its repairs goes to the contract's own rule, which alone writes the reasons. So a check here may
be narrower than the contract, and must never be wider; a property test holds the two together.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from email_validator.rfc_constants import CASE_INSENSITIVE_MAILBOX_NAMES

from toolkit.contract.clients import AREA_CODES, UNASSIGNED_CEP, QualityWarning, oldest_birthdate
from toolkit.contract.fields import (
    DATE_SHAPE,
    INSTALLATION_MAX,
    INSTALLATION_MIN,
    NEIGHBORHOOD_MIN,
    NOT_IN_TEXT,
    TEXT_MAX,
    TRIMMED,
)
from toolkit.errors import InvalidField
from toolkit.intake.cells import Bytes, Mask, mask_of, may_have_outer_space, offsets, values
from toolkit.intake.headings import FIELD, FIELDS, Field, Invalid
from toolkit.intake.results import NUMBER_ROUNDED, WARNED_FIELD, WARNINGS, LoadOptions, Repair
from toolkit.intake.sources import Chunk
from toolkit.intake.workbook_process import CellKind

ROW: Final = "row"
"""Stands for the field where the whole row is at fault."""

NUMBERS: Final = (CellKind.NUMBER, CellKind.NUMBER_1904)

EXCEL_EPOCH: Final = date(1899, 12, 30)
"""The day before Excel's day 1, moved by the leap day of 1900 that Excel invents."""
EPOCH_OF_1904: Final = date(1904, 1, 1)
_UNIX_EPOCH: Final = date(1970, 1, 1)
_DAYS_FROM_1904: Final = (EPOCH_OF_1904 - EXCEL_EPOCH).days
_LAST_DAY_NUMBER: Final = (date(2099, 12, 31) - EXCEL_EPOCH).days
_DAY_NUMBER: Final = "^[1-7][0-9]{4}$"
"""Day numbers from 10000 (1927) on are dates; shorter ones may be a year or a shortened date."""

Kinds = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class _Step:
    """A repair of the cells that match ``pattern``.

    Spaces are taken out of the cell first where ``spaces`` says so; ``more`` lets the steps behind it go on.
    """

    pattern: str
    replacement: str
    repairs: tuple[Repair, ...]
    spaces: bool = False
    more: bool = False


@dataclass(frozen=True, slots=True)
class _Rule:
    """The rule of one field.

    What has the ``shape`` needs no repair; the ``steps`` are tried on all else. A number that matches
    ``short`` is given back the zeros that it lost. ``sure`` marks values that the
    contract surely takes as they are.
    """

    sure: Callable[[pa.StringArray], Mask]
    shape: str = ""
    steps: tuple[_Step, ...] = ()
    short: tuple[str, int, Repair] | None = None
    dates: bool = False


def _matches(column: pa.StringArray, pattern: str) -> Mask:
    return mask_of(pc.match_substring_regex(column, pattern))


_MISLEADING: Final = "[" + re.sub(r"\\u([0-9a-f]{4})", r"\\x{\1}", NOT_IN_TEXT) + "]"
"""The characters that no text may have, as RE2 writes them."""


def plain_text(column: pa.StringArray, longest: int = TEXT_MAX) -> Mask:
    """Mark the texts that are surely short enough, in bytes, and hold no character that misleads."""
    fits = np.asarray(np.diff(offsets(column)) <= longest)
    if (values(column) - np.uint8(0x20) < 0x5F).all():  # printable ASCII
        return fits
    return np.asarray(fits & ~_matches(column, _MISLEADING))


def _of_length(shortest: int, longest: int) -> Callable[[pa.StringArray], Mask]:
    def sure(column: pa.StringArray) -> Mask:
        lengths = pc.utf8_length(column).to_numpy(zero_copy_only=False)
        return np.asarray(plain_text(column) & (lengths >= shortest) & (lengths <= longest))

    return sure


def _like(pattern: str) -> Callable[[pa.StringArray], Mask]:
    return lambda column: _matches(column, pattern)


_CHECK_DIGIT: Final = (np.arange(1000) * 10 % 11 % 10).astype(np.uint8)
"""The check digit that belongs to a weighted sum."""


def cpf_digits_fit(digits: Bytes) -> Mask:
    """Mark the rows of 11 digits that are a CPF: both check digits fit, and not all digits are the same."""
    running = np.zeros(len(digits), dtype=np.uint16)
    weighted = running.copy()
    for place in range(9):
        running += digits[:, place]
        weighted += running  # which weighs the first nine digits by 9, 8, ... 1
    first = _CHECK_DIGIT[weighted + running]  # by 10, 9, ... 2
    second = _CHECK_DIGIT[weighted + 2 * running + 2 * digits[:, 9]]  # by 11, 10, ... 3, and 2 for the tenth
    repeated = (digits == digits[:, :1]).all(axis=1)
    return np.asarray((first == digits[:, 9]) & (second == digits[:, 10]) & ~repeated)


def _cpf(column: pa.StringArray) -> Mask:
    sure = _matches(column, "^[0-9]{11}$")
    whole = column.filter(pa.array(sure))
    sure[sure] = cpf_digits_fit(values(whole).reshape(-1, 11) - np.uint8(ord("0")))
    return sure


_LABEL: Final = "([A-Za-z0-9]([A-Za-z0-9]|-[A-Za-z0-9])*\\.)+"
_EMAIL: Final = rf"^[A-Za-z0-9_+-]+(\.[A-Za-z0-9_+-]+)*@{_LABEL}(?i:br|com|net|org|edu|gov|info|io|me|pt)$"
_EMAIL_LONGEST: Final = 64
"""Bytes; in an address this short neither the part before the @ nor a label of the domain is too long."""
_MAILBOX: Final = "^(?i:" + "|".join(sorted(CASE_INSENSITIVE_MAILBOX_NAMES)) + ")@"
"""Names that are kept in lower case, such as INFO; they are left to the contract."""
_CAPITALS_IN_DOMAIN: Final = "@.*[A-Z]"


def _email(column: pa.StringArray) -> Mask:
    short = np.asarray(np.diff(offsets(column)) <= _EMAIL_LONGEST)
    sure = short & _matches(column, _EMAIL) & ~_matches(column, _CAPITALS_IN_DOMAIN)
    return sure & ~(_matches(column, _MAILBOX) & _matches(column, "^[^@]*[A-Z]"))


def _with_small_domains(column: pa.StringArray) -> pa.StringArray:
    """Return addresses with their domains in lower case, as the contract keeps them."""
    large = _matches(column, _EMAIL) & _matches(column, _CAPITALS_IN_DOMAIN)
    if not large.any():
        return column
    found = column.filter(pa.array(large))
    local, domain = (pc.replace_substring_regex(found, pattern, "") for pattern in ("@.*$", "^.*@"))
    return pc.replace_with_mask(
        column, pa.array(large), pc.binary_join_element_wise(local, pc.ascii_lower(domain), "@")
    )


_DATE: Final = (
    "^(19|20)[0-9]{2}-((0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])|(0[13-9]|1[0-2])-(29|30)|(0[13578]|1[02])-31)"
)
"""The start of a date that surely exists; the 29th of February is left to the contract."""

_RULES: Final[Mapping[str, _Rule]] = {
    "cpf": _Rule(
        _cpf,
        shape="^[0-9]{11}$",
        steps=(
            _Step(
                "^'?([0-9]{3})[. ]?([0-9]{3})[. ]?([0-9]{3})[-./ ]?([0-9]{2})$",
                r"\1\2\3\4",
                (Repair.CPF_MASK,),
            ),
        ),
        short=("^[0-9]{1,10}$", 11, Repair.CPF_ZEROS),
    ),
    "address.zipCode": _Rule(
        _like("^(0[1-9]|[1-9][0-9])[0-9]{6}$"),
        shape="^[0-9]{8}$",
        steps=(_Step("^'?([0-9]{2})[. ]?([0-9]{3})[- ]?([0-9]{3})$", r"\1\2\3", (Repair.CEP_MASK,)),),
        short=("^[0-9]{7}$", 8, Repair.CEP_ZEROS),
    ),
    "phoneNumber": _Rule(
        _like("^[0-9]{11}$"),
        shape="^[0-9]{11}$",
        steps=(
            _Step(r"^(?:\+|00)?55([0-9]{11})$", r"\1", (Repair.PHONE_COUNTRY_CODE,)),
            _Step(
                r"^'?(?:\+|00)?55\(?([0-9]{2})\)?[-.]?([0-9]{5})[-.]?([0-9]{4})$",
                r"\1\2\3",
                (Repair.PHONE_MASK, Repair.PHONE_COUNTRY_CODE),
                spaces=True,
            ),
            _Step(
                r"^'?\(?([0-9]{2})\)?[-.]?([0-9]{5})[-.]?([0-9]{4})$",
                r"\1\2\3",
                (Repair.PHONE_MASK,),
                spaces=True,
            ),
        ),
    ),
    "birthdate": _Rule(
        _like(f"{_DATE}$"),
        shape=f"^{DATE_SHAPE.pattern}$",
        steps=(
            _Step("[T ]0?0:00(:00([.,]0+)?)?$", "", (Repair.DATE_MIDNIGHT,), more=True),
            *(
                _Step(
                    f"^({'[0-9]' * days})/({'[0-9]' * months})/([0-9]{{4}})$",
                    rf"\3-{'0' * (2 - months)}\2-{'0' * (2 - days)}\1",
                    (Repair.DATE_DAY_FIRST,),
                )
                for days in (1, 2)
                for months in (1, 2)
            ),
        ),
        dates=True,
    ),
    "email": _Rule(_email),
    "address.neighborhood": _Rule(_of_length(NEIGHBORHOOD_MIN, TEXT_MAX)),
    "address.installationNumber": _Rule(_of_length(INSTALLATION_MIN, INSTALLATION_MAX)),
}
"""The fields with a rule of their own; all others are plain text."""
_TEXT: Final = _Rule(plain_text)

_SPACES: Final = f"[{TRIMMED}]+"
_INVISIBLE: Final = "[\u200b\u200c\u200d\u2060\ufeff]"
"""Characters without width, which nobody means to write into a number or a date."""


@dataclass
class _ColumnVerdict:
    """The cells of one field while they are repaired: their values, and the cells of each repair."""

    values: pa.StringArray
    kinds: Kinds | None
    repairs: dict[Repair, Mask] = field(default_factory=dict)

    def trim(self) -> None:
        """Cut white space around the cells."""
        if may_have_outer_space(self.values):
            self._set(pc.utf8_trim(self.values, characters=TRIMMED))

    def repair(self, rule: _Rule, may_pad: Mask | None) -> None:
        """Repair the cells that are not written as the contract wants them."""
        odd = ~_matches(self.values, rule.shape)
        if not odd.any():
            return
        rest = self.values.filter(pa.array(odd))
        tidy = pc.replace_substring_regex(pc.replace_substring_regex(rest, _INVISIBLE, ""), _SPACES, " ")
        self._set(pc.replace_with_mask(self.values, pa.array(odd), pc.utf8_trim(tidy, characters=" ")))
        waiting = odd & ~_matches(self.values, rule.shape)
        for step in rule.steps:
            waiting = self._take(step, waiting)
        if rule.short is not None and may_pad is not None:
            pattern, width, repair = rule.short
            self._change(waiting & may_pad, pattern, lambda cells: pc.utf8_lpad(cells, width, "0"), (repair,))
        if rule.dates:
            self._count_days(waiting)

    def _set(self, cells: pa.StringArray) -> None:
        """Take over cells that lost white space."""
        changed = mask_of(pc.not_equal(cells, self.values))
        if changed.any():
            self._note((Repair.WHITE_SPACE,), changed)
            self.values = cells

    def _take(self, step: _Step, waiting: Mask) -> Mask:
        """Do one repair, and return the cells that wait for the next."""

        def without_spaces(cells: pa.StringArray) -> pa.StringArray:
            return pc.replace_substring(cells, " ", "") if step.spaces else cells

        def repaired(cells: pa.StringArray) -> pa.StringArray:
            return pc.replace_substring_regex(without_spaces(cells), step.pattern, step.replacement)

        done = self._change(waiting, step.pattern, repaired, step.repairs, seen=without_spaces)
        return waiting if step.more else waiting & ~done

    def _change(
        self,
        among: Mask,
        pattern: str,
        change: Callable[[pa.StringArray], pa.StringArray],
        repairs: Sequence[Repair],
        seen: Callable[[pa.StringArray], pa.StringArray] = lambda cells: cells,
    ) -> Mask:
        """Change the cells among these that match the pattern, and return which they are."""
        found = np.zeros(len(among), dtype=bool)
        if among.any():
            found[among] = _matches(seen(self.values.filter(pa.array(among))), pattern)
        if found.any():
            cells = pa.array(found)
            self.values = pc.replace_with_mask(self.values, cells, change(self.values.filter(cells)))
            self._note(repairs, found)
        return found

    def _count_days(self, waiting: Mask) -> None:
        """Read Excel's day numbers as dates."""
        first = np.full(len(waiting), (EXCEL_EPOCH - _UNIX_EPOCH).days, np.int32)
        if self.kinds is not None:
            first += np.where(self.kinds == CellKind.NUMBER_1904, _DAYS_FROM_1904, 0).astype(np.int32)
        numbers = waiting & _matches(self.values, _DAY_NUMBER)
        if not numbers.any():
            return
        days = self.values.filter(pa.array(numbers)).cast(pa.int32()).to_numpy()
        numbers[numbers] = days <= _LAST_DAY_NUMBER
        days = days[days <= _LAST_DAY_NUMBER]
        dates = pa.array(days + first[numbers], pa.int32()).cast(pa.date32()).cast(pa.string())
        self.values = pc.replace_with_mask(self.values, pa.array(numbers), dates)
        self._note((Repair.EXCEL_DATE,), numbers)

    def _note(self, repairs: Sequence[Repair], cells: Mask) -> None:
        for repair in repairs:
            self.repairs[repair] = self.repairs[repair] | cells if repair in self.repairs else cells


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


def decide(chunk: Chunk, columns: Mapping[str, int], options: LoadOptions, today: date) -> ChunkVerdict:
    """Judge the rows of ``chunk``; ``columns`` says which of its columns holds which field."""
    size = len(chunk)
    faults = {**chunk.faults, **dict.fromkeys(_totals(chunk, columns), IS_TOTAL)}
    errors: dict[int, list[InvalidField]] = {row: [InvalidField(ROW, reason)] for row, reason in faults.items()}
    wanted = np.ones(size, dtype=bool)
    wanted[list(faults)] = False
    settled: dict[str, pa.StringArray] = {}
    repairs: list[tuple[Repair, Mask]] = []
    for each in FIELDS:
        if each.name not in columns:
            settled[each.column] = pa.nulls(size, pa.string())
            continue
        column, reasons = _settled(each, chunk, columns[each.name], options, wanted)
        settled[each.column] = column.values
        repairs.extend(column.repairs.items())
        for row, reason in reasons:
            errors.setdefault(row, []).append(InvalidField(each.name, reason))
    accepted = np.ones(size, dtype=bool)
    accepted[list(errors)] = False
    warnings = {kind: mask & accepted for kind, mask in _warnings(settled, today) if (mask & accepted).any()}
    if options.warnings_as_errors:
        for kind, mask in warnings.items():
            accepted &= ~mask
            for row in np.flatnonzero(mask).tolist():
                errors.setdefault(row, []).append(_as_error(kind))
    counts: Counter[Repair] = Counter()
    for repair, cells in repairs:
        counts[repair] += int((cells & accepted).sum())
    return ChunkVerdict(settled, accepted, errors, dict(+counts), warnings)


IS_ERROR: Final = "Holds an error of a formula instead of a value"
IS_TOTAL: Final = "Is a row of totals and no client; leave it out"


def _settled(
    each: Field, chunk: Chunk, position: int, options: LoadOptions, wanted: Mask
) -> tuple[_ColumnVerdict, list[tuple[int, str]]]:
    """Return the column of one field, and the rows that break its rule with the reason."""
    rule, kinds = _RULES.get(each.name, _TEXT), chunk.kinds.get(position)
    column = _ColumnVerdict(chunk.columns[position], kinds)
    column.trim()
    if options.strict:
        column.repairs.clear()
    elif rule.steps:
        may_pad = None if kinds is None else np.isin(kinds, NUMBERS)
        column.repair(rule, np.ones(len(chunk), dtype=bool) if options.pad_cpf else may_pad)
    if rule.sure is _email:
        column.values = _with_small_domains(column.values)
    blank = np.asarray(np.diff(offsets(column.values)) == 0)
    sure = rule.sure(column.values) & ~blank
    for repair in column.repairs:
        column.repairs[repair] = column.repairs[repair] & ~blank
    if blank.any():
        column.values = pc.if_else(pa.array(blank), pa.scalar(None, pa.string()), column.values)
        sure |= blank & (not each.required)
    errors = np.zeros(len(chunk), dtype=bool) if kinds is None else kinds == CellKind.ERROR
    found = [(row, IS_ERROR) for row in np.flatnonzero(errors & wanted).tolist()]
    unsure = wanted & ~sure & ~errors
    if not unsure.any():
        return column, found
    texts, reasons = _by_contract(each, column.values.filter(pa.array(unsure)))
    column.values = pc.replace_with_mask(column.values, pa.array(unsure), texts)
    refused = zip(np.flatnonzero(unsure).tolist(), reasons, strict=True)
    return column, found + [(row, reason) for row, reason in refused if reason is not None]


def _by_contract(each: Field, cells: pa.StringArray) -> tuple[pa.StringArray, list[str | None]]:
    """Have the contract's rule judge each distinct cell once: its value, or the reason against it."""
    distinct = cells.dictionary_encode(null_encoding="encode")
    found: list[tuple[str | None, str | None]] = []
    for text in distinct.dictionary.to_pylist():
        try:
            found.append((each.check(text), None))
        except Invalid as invalid:
            found.append((None, invalid.args[0]))
    places = distinct.indices.to_pylist()
    return pa.array([found[place][0] for place in places], pa.string()), [found[place][1] for place in places]


_TOTAL: Final = r"^(?i:(sub)?tota(l|is))\b"


def _totals(chunk: Chunk, columns: Mapping[str, int]) -> Iterator[int]:
    """Yield the rows of a spreadsheet's totals: the word stands in place of a CPF, or where there is none."""
    cpfs = chunk.columns[columns["cpf"]]
    yield from np.flatnonzero(_matches(cpfs, _TOTAL)).tolist()
    for row in np.flatnonzero(np.diff(offsets(cpfs)) == 0).tolist():
        if any(re.match(_TOTAL, column[row].as_py().strip(TRIMMED)) for column in chunk.columns):
            yield row


_ROUNDED_FIELDS: Final = tuple(
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
    for each in _ROUNDED_FIELDS:
        rounded |= _matches(settled[each.column], _ROUNDED)
    yield NUMBER_ROUNDED, rounded


def _as_error(kind: str) -> InvalidField:
    name = WARNED_FIELD.get(kind, ROW)
    return InvalidField(name, WARNINGS[kind].removeprefix(f"{name.rpartition('.')[2]} "))


def with_days_from_1900(chunk: Chunk, position: int) -> Chunk:
    """Return the chunk with the day numbers of a column counted from 1900, as all files do that a load writes."""
    kinds, cells = chunk.kinds.get(position), chunk.columns[position]
    moved = None if kinds is None else (kinds == CellKind.NUMBER_1904) & _matches(cells, _DAY_NUMBER)
    if moved is None or not moved.any():
        return chunk
    days = pc.add(cells.filter(pa.array(moved)).cast(pa.int32()), _DAYS_FROM_1904).cast(pa.string())
    columns = list(chunk.columns)
    columns[position] = pc.replace_with_mask(cells, pa.array(moved), days)
    return replace(chunk, columns=columns)
