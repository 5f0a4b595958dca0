"""Check rows of clients by whole columns, and repair the cells whose meaning is certain.

Each field has one rule here: the cells that are surely valid, and the repairs of all others, in their order. A
cell that is not surely valid after its repairs goes to the contract's own rule, which alone writes the reasons.
So a check here may be narrower than the contract, and must never be wider; a property test holds the two together.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import ValidationError

from toolkit.contract.fields import (
    INSTALLATION_MAX,
    INSTALLATION_MIN,
    NEIGHBORHOOD_MIN,
    NOT_IN_TEXT,
    TEXT_MAX,
    TRIMMED,
    reason_of,
)
from toolkit.contract.resources import AREA_CODES, UNASSIGNED_CEP, QualityWarning, oldest_birthdate
from toolkit.errors import InvalidField
from toolkit.intake.headings import FIELDS, Field
from toolkit.intake.results import Repair
from toolkit.intake.sources import ERROR_OF_FORMULA, IS_ERROR, ROUNDED, Bytes, Chunk, Mask, mask_of, values
from toolkit.message import Message

ROW: Final = Message("row")  # stands for the field where the whole row is at fault
EXCEL_EPOCH: Final = date(1899, 12, 30)  # before Excel's day 1, and one more: Excel has a leap day in 1900
_DAY_NUMBER: Final = "^([1-6][0-9]|7[0-2])[0-9]{3}$"  # 1927 to 2099; shorter ones may be years

_Step = tuple[Repair, Callable[[pa.StringArray, Mask], pa.StringArray]]
"""A repair, and its function: it gets the cells, and which of them are numbers in a workbook."""


def _matches(column: pa.StringArray, pattern: str, signs: bytes = b"") -> Mask:
    """Mark the texts that match. A column without any of the ``signs``, one of which each match has, has none."""
    if signs and not any((values(column) == sign).any() for sign in signs):
        return np.zeros(len(column), dtype=bool)
    return mask_of(pc.match_substring_regex(column, pattern))


def _like(pattern: str) -> Callable[[pa.StringArray], Mask]:
    return lambda column: _matches(column, pattern)


_MISLEADING: Final = "[" + re.sub(r"\\u([0-9a-f]{4})", r"\\x{\1}", NOT_IN_TEXT) + "]"
"""The characters that no text may have, as RE2 writes them."""

_ORDINARY: Final = np.isin(np.arange(256), [*range(0x20, 0x7F), *range(0x80, 0xC0), 0xC3])
"""By byte of UTF-8: whether it is of printable ASCII, or of a letter from À to ÿ."""


def _text(shortest: int = 1, longest: int = TEXT_MAX) -> Callable[[pa.StringArray], Mask]:
    def sure(column: pa.StringArray) -> Mask:
        lengths = pc.utf8_length(column).to_numpy(zero_copy_only=False)
        fits = np.asarray((lengths >= shortest) & (lengths <= longest))
        return fits if _ORDINARY[values(column)].all() else fits & ~_matches(column, _MISLEADING)

    return sure


_CHECK_DIGIT: Final = (np.arange(1000) * 10 % 11 % 10).astype(np.uint8)  # the one of a weighted sum


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


_LOCAL: Final = r"^[A-Za-z0-9_+-]+(\.[A-Za-z0-9_+-]+)*@"
_DOMAIN: Final = r"([a-z0-9]([a-z0-9]|-[a-z0-9])*\.)+(br|com|net|org|edu|gov|info|io|me|pt)$"
_CAPITALS_IN_NAME: Final = "^[A-Za-z]*[A-Z][A-Za-z]*@"
"""A name of letters alone may be one that is kept in lower case, such as INFO; it is left to the contract."""
_EMAIL_LONGEST: Final = 64  # in one as short, neither the part before the @ nor a label is too long


def _email(column: pa.StringArray) -> Mask:
    sure = _text(longest=_EMAIL_LONGEST)(column) & _matches(column, _LOCAL + _DOMAIN)
    return sure & ~_matches(column, _CAPITALS_IN_NAME)


_DATE: Final = (
    "^(19|20)[0-9]{2}-((0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])|(0[13-9]|1[0-2])-(29|30)|(0[13578]|1[02])-31)$"
)
"""A date that surely exists; the 29th of February is left to the contract."""


def _replace(pattern: str, replacement: str) -> Callable[[pa.StringArray, Mask], pa.StringArray]:
    return lambda cells, _: pc.replace_substring_regex(cells, pattern, replacement)


def _pad(shortest: int, width: int) -> Callable[[pa.StringArray, Mask], pa.StringArray]:
    """Give a number back the zeros in front that it lost, where it still has as many digits as ``shortest``."""

    def padded(cells: pa.StringArray, numbers: Mask) -> pa.StringArray:
        short = _matches(cells, f"^[0-9]{{{shortest},{width - 1}}}$") & numbers
        return pc.if_else(pa.array(short), pc.utf8_lpad(cells, width, "0"), cells)

    return padded


def _as_dates(cells: pa.StringArray, _: Mask) -> pa.StringArray:
    """Write the day numbers among the cells as dates."""
    numbers = pa.array(_matches(cells, _DAY_NUMBER))
    days = pc.add(pc.if_else(numbers, cells, "0").cast(pa.int32()), (EXCEL_EPOCH - date(1970, 1, 1)).days)
    return pc.if_else(numbers, days.cast(pa.int32()).cast(pa.date32()).cast(pa.string()), cells)


_TIDY: Final[tuple[_Step, ...]] = (
    (Repair.WHITE_SPACE, _replace("[\u200b\u200c\u200d\u2060\ufeff]", "")),
    (Repair.WHITE_SPACE, _replace(f"[{TRIMMED}]+", " ")),
    (Repair.WHITE_SPACE, _replace("^ | $", "")),
)
"""The white space, and the characters without width, which nobody means to write into a number or a date."""

_CPF_MASK: Final = "^'?([0-9]{3})[. ]?([0-9]{3})[. ]?([0-9]{3})[-./ ]?([0-9]{2})$"
_CEP_MASK: Final = "^'?([0-9]{2})[. ]?([0-9]{3})[- ]?([0-9]{3})$"
_PHONE_MASK: Final = r"^'?\(?([0-9]{2})\)?[-.]?([0-9]{5})[-.]?([0-9]{4})$"
_COUNTRY_CODE: Final = r"^'?(?:\+|00)?55(\(?[0-9]{2}\)?[-.]?[0-9]{5}[-.]?[0-9]{4})$"

_SURE: Final[Mapping[str, Callable[[pa.StringArray], Mask]]] = {
    "cpf": _cpf,
    "address.zipCode": _like("^(0[1-9]|[1-9][0-9])[0-9]{6}$"),
    "phoneNumber": _like("^[0-9]{11}$"),
    "birthdate": _like(_DATE),
    "email": _email,
    "address.neighborhood": _text(NEIGHBORHOOD_MIN),
    "address.installationNumber": _text(INSTALLATION_MIN, INSTALLATION_MAX),
}
"""By field: what marks the values that the contract surely takes as they are; all other fields are plain text."""

_REPAIRS: Final[Mapping[str, tuple[_Step, ...]]] = {
    "cpf": ((Repair.CPF_MASK, _replace(_CPF_MASK, r"\1\2\3\4")), (Repair.CPF_ZEROS, _pad(1, width=11))),
    "address.zipCode": ((Repair.CEP_MASK, _replace(_CEP_MASK, r"\1\2\3")), (Repair.CEP_ZEROS, _pad(7, width=8))),
    "phoneNumber": (
        (Repair.PHONE_MASK, _replace(" ", "")),
        (Repair.PHONE_COUNTRY_CODE, _replace(_COUNTRY_CODE, r"\1")),
        (Repair.PHONE_MASK, _replace(_PHONE_MASK, r"\1\2\3")),
    ),
    "birthdate": (
        (Repair.DATE_MIDNIGHT, _replace("[T ]0?0:00(:00([.,]0+)?)?$", "")),
        (Repair.DATE_DAY_FIRST, _replace("^([0-9]/)", r"0\1")),
        (Repair.DATE_DAY_FIRST, _replace("^([0-9]{2}/)([0-9]/)", r"\10\2")),
        (Repair.DATE_DAY_FIRST, _replace("^([0-9]{2})/([0-9]{2})/([0-9]{4})$", r"\3-\2-\1")),
        (Repair.EXCEL_DATE, _as_dates),
    ),
}
"""By field: what is tried on all other values, in this order."""


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


def decide(chunk: Chunk, columns: Mapping[str, int], today: date) -> ChunkVerdict:
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
        settled[each.column], repaired, reasons = _settled(each, chunk, columns[each.name], wanted)
        repairs.extend(repaired.items())
        for row, reason in reasons:
            errors.setdefault(row, []).append(InvalidField(each.name, reason))
    accepted = np.ones(size, dtype=bool)
    accepted[list(errors)] = False
    warnings = {kind: mask & accepted for kind, mask in _warnings(settled, today) if (mask & accepted).any()}
    counts: Counter[Repair] = Counter()
    for repair, cells in repairs:
        counts[repair] += int((cells & accepted).sum())
    return ChunkVerdict(settled, accepted, errors, dict(+counts), warnings)


IS_TOTAL: Final = Message("Is a row of totals and no client; leave it out")


def _settled(
    each: Field, chunk: Chunk, position: int, wanted: Mask
) -> tuple[pa.StringArray, Mapping[Repair, Mask], list[tuple[int, str]]]:
    """Return the column of one field, the cells of each repair, and the rows that break its rule with why."""
    sure_of, steps, given = _SURE.get(each.name, _text()), _REPAIRS.get(each.name), chunk.columns[position]
    found: defaultdict[Repair, Mask] = defaultdict(lambda: np.zeros(len(chunk), dtype=bool))
    cells = pc.utf8_trim(given, characters=TRIMMED)
    found[Repair.WHITE_SPACE] |= mask_of(pc.not_equal(cells, given))
    sure = sure_of(cells)
    if steps is not None and not sure.all():
        numbers = chunk.numbers.get(position, np.zeros(len(chunk), dtype=bool))
        rest = cells.filter(pa.array(~sure))
        for repair, step in (*_TIDY, *steps):
            repaired = step(rest, numbers[~sure])
            found[repair][~sure] |= mask_of(pc.not_equal(repaired, rest))
            rest = repaired
        cells = pc.replace_with_mask(cells, pa.array(~sure), rest)
        sure[~sure] = sure_of(rest)
    blank = mask_of(pc.equal(cells, ""))
    repairs = {repair: changed & ~blank for repair, changed in found.items()}
    settled = pc.if_else(pa.array(blank), pa.scalar(None, pa.string()), cells)
    sure = np.where(blank, not each.required, sure)
    errors = _matches(cells, ERROR_OF_FORMULA, b"#:")
    refused: list[tuple[int, str]] = [(row, IS_ERROR) for row in np.flatnonzero(errors & wanted).tolist()]
    unsure = wanted & ~sure & ~errors
    if unsure.any():
        texts, reasons = _by_contract(each, settled.filter(pa.array(unsure)))
        settled = pc.replace_with_mask(settled, pa.array(unsure), texts)
        rows = np.flatnonzero(unsure).tolist()
        refused += [(row, reason) for row, reason in zip(rows, reasons, strict=True) if reason is not None]
    return settled, repairs, refused


def _by_contract(each: Field, cells: pa.StringArray) -> tuple[pa.StringArray, list[str | None]]:
    """Have the contract's rule judge each distinct cell once: its value, or the reason against it."""
    distinct = cells.dictionary_encode(null_encoding="encode")
    found: list[tuple[str | None, str | None]] = []
    for text in distinct.dictionary.to_pylist():
        try:
            value = each.rule.validate_python(text)
            found.append((None if value is None else str(value), None))
        except ValidationError as error:
            found.append((None, reason_of(error.errors(include_url=False, include_input=False)[0])))
    places = distinct.indices.to_pylist()
    return pa.array([found[place][0] for place in places], pa.string()), [found[place][1] for place in places]


_TOTAL: Final = r"^(?i:(sub)?tota(l|is))\b"


def _totals(chunk: Chunk, columns: Mapping[str, int]) -> Iterator[int]:
    """Yield the rows of a spreadsheet's totals: the word stands in place of a CPF, or where there is none."""
    cpfs = chunk.columns[columns["cpf"]]
    yield from np.flatnonzero(_matches(cpfs, _TOTAL)).tolist()
    for row in np.flatnonzero(mask_of(pc.equal(cpfs, ""))).tolist():
        if any(re.match(_TOTAL, column[row].as_py().strip(TRIMMED)) for column in chunk.columns):
            yield row


_MAY_BE_ROUNDED: Final = ("external_id", "rg", "number_on_dealership", "enrollment", "installation_number")
"""Columns of mostly digits, which a spreadsheet may have shortened."""

_DATED: Final = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"

_WORDS: Final = ("first_name", "last_name", "neighborhood", "address", "city")
_MISREAD: Final = "[ÃÂ][^\\x00-\\x7f]|\ufffd|(?i:[a-zà-ÿ]\\?+[a-zà-ÿ])"
"""The letter ã in UTF-8 that was read as Windows-1252, and what stands for a letter that an encoding lacks."""
_MISREAD_SIGNS: Final = b"?\x82\x83\xef"  # the last bytes of Â and Ã, and the first of U+FFFD


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
    for warning, names, pattern, signs in (
        (QualityWarning.NUMBER_ROUNDED, _MAY_BE_ROUNDED, ROUNDED, b"+"),
        (QualityWarning.NUMBER_IS_DATE, (*_MAY_BE_ROUNDED, "address_number"), _DATED, b"-"),
        (QualityWarning.MISREAD, _WORDS, _MISREAD, _MISREAD_SIGNS),
    ):
        yield warning, np.logical_or.reduce([_matches(settled[name], pattern, signs) for name in names])
