"""Judge whole columns at once: find the cells that are surely valid, and their values.

A cell that is not sure is not wrong: it goes to ``repairs`` and to the contract's own rule one by one. So
these checks may be narrower than the contract, and must never be wider.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from email_validator.rfc_constants import CASE_INSENSITIVE_MAILBOX_NAMES

from toolkit.domain.fields import (
    CONSUMER_UNIT_DIGITS,
    INSTALLATION_MAX,
    INSTALLATION_MIN,
    NEIGHBORHOOD_MIN,
    TEXT_MAX,
    TRIMMED,
)
from toolkit.operations.register.bulk_load.fields import Field
from toolkit.operations.register.bulk_load.options import Repair
from toolkit.operations.register.bulk_load.shapes import Shape, column_of, digits_column, read, storable
from toolkit.operations.spreadsheets.text_bytes import Bytes, Mask, may_have_outer_space, offsets


@dataclass(frozen=True, slots=True)
class Judged:
    """A column after the checks: values of the cells that are ``sure``, and which of these were repaired.

    The cells that are ``alike`` are wrong, all for the same reason, whichever the contract calls it.
    """

    values: pa.StringArray
    sure: Mask
    repairs: Mapping[Repair, Mask]
    alike: Mask | None = None


@dataclass(frozen=True, slots=True)
class _Cells:
    """A trimmed column, and how it may be repaired."""

    column: pa.StringArray
    strict: bool
    may_pad: Mask | None


def judge(field: Field, column: pa.StringArray, *, strict: bool = False, may_pad: Mask | None = None) -> Judged:
    """Judge the cells of one field.

    With ``strict`` only what the contract accepts unrepaired is sure. ``may_pad`` marks the cells that may get
    back zeros that they lost.
    """
    trimmed = pc.utf8_trim(column, characters=TRIMMED) if may_have_outer_space(column) else column
    outer = _cut(column, trimmed)
    blank = np.asarray(np.diff(offsets(trimmed)) == 0)
    judged = _JUDGES.get(field.name, _text)(_Cells(trimmed, strict, None if strict else may_pad))
    sure, repairs = judged.sure & ~blank, dict(judged.repairs)
    alike = None if judged.alike is None else judged.alike & ~blank
    if outer is not None:
        repairs[Repair.WHITE_SPACE] = outer & ~blank
    if strict:  # the contract trims, too; these few cells are left to it
        sure, repairs = sure if outer is None else sure & ~outer, {}
    if field.required or not blank.any():
        return Judged(judged.values, sure, repairs, alike)
    absent = pa.scalar(None, pa.string())
    return Judged(pc.if_else(pa.array(blank), absent, judged.values), sure | blank, repairs, alike)


def _cut(column: pa.StringArray, trimmed: pa.StringArray) -> Mask | None:
    """Mark the cells that lost white space; ``None`` for none."""
    before, after = offsets(column), offsets(trimmed)
    if before[-1] - before[0] == after[-1] - after[0]:
        return None
    return np.asarray(np.diff(before) != np.diff(after))


def _text(cells: _Cells) -> Judged:
    if (np.diff(offsets(cells.column)) <= TEXT_MAX).all():  # bytes: no fewer than characters
        return Judged(cells.column, storable(cells.column), {})
    return _of_length(cells, _lengths(cells.column) <= TEXT_MAX)


def _neighborhood(cells: _Cells) -> Judged:
    lengths = _lengths(cells.column)
    judged = _of_length(cells, lengths >= NEIGHBORHOOD_MIN)
    return replace(judged, sure=judged.sure & (lengths <= TEXT_MAX))  # too long is another reason than too short


def _installation(cells: _Cells) -> Judged:
    lengths = _lengths(cells.column)
    judged = _of_length(cells, (lengths >= INSTALLATION_MIN) & (lengths <= INSTALLATION_MAX))
    assert judged.alike is not None
    # Numbers of consumer units have a reason of their own.
    return replace(judged, alike=judged.alike & (lengths != CONSUMER_UNIT_DIGITS))


def _of_length(cells: _Cells, fits: Mask) -> Judged:
    text = storable(cells.column)
    return Judged(cells.column, text & fits, {}, alike=text & ~fits)


def _lengths(column: pa.StringArray) -> npt.NDArray[np.int32]:
    return np.asarray(pc.utf8_length(column).to_numpy(zero_copy_only=False))


_CONTRACT: Final = ()
"""No repair: the contract accepts this shape."""

_Shapes = tuple[tuple[Shape, tuple[Repair, ...]], ...]

_CPF: Final[_Shapes] = (
    (Shape("99999999999"), _CONTRACT),
    (Shape("999.999.999-99"), (Repair.CPF_MASK,)),
)
_CEP: Final[_Shapes] = (
    (Shape("99999999"), _CONTRACT),
    (Shape("99999-999"), (Repair.CEP_MASK,)),
    (Shape("99.999-999"), (Repair.CEP_MASK,)),
)
_PHONE: Final[_Shapes] = (
    (Shape("99999999999"), _CONTRACT),
    (Shape("(99) 99999-9999"), (Repair.PHONE_MASK,)),
    (Shape("(99)99999-9999"), (Repair.PHONE_MASK,)),
    (Shape("99 99999-9999"), (Repair.PHONE_MASK,)),
    (Shape("+5599999999999"), (Repair.PHONE_COUNTRY_CODE,)),
    (Shape("5599999999999"), (Repair.PHONE_COUNTRY_CODE,)),
    (Shape("+55 99 99999-9999"), (Repair.PHONE_MASK, Repair.PHONE_COUNTRY_CODE)),
    (Shape("+55 (99) 99999-9999"), (Repair.PHONE_MASK, Repair.PHONE_COUNTRY_CODE)),
)
_DATE: Final[_Shapes] = (
    (Shape("9999-99-99"), _CONTRACT),
    (Shape("99/99/9999", order=(4, 5, 6, 7, 2, 3, 0, 1)), (Repair.DATE_DAY_FIRST,)),
)


def _read(cells: _Cells, shapes: _Shapes) -> tuple[Bytes, Mask, dict[Repair, Mask]]:
    """Return the digits of the cells in one of ``shapes``, which cells have one, and the repairs made."""
    known = shapes[:1] if cells.strict else shapes
    digits, which = read(cells.column, [shape for shape, _ in known])
    repairs: dict[Repair, Mask] = {}
    for number, (_, done) in enumerate(known):
        for repair in done:
            repairs[repair] = repairs.get(repair, np.zeros(len(which), dtype=bool)) | (which == number)
    return digits, which >= 0, repairs


def _with_zeros(cells: _Cells, shortest: int, width: int) -> tuple[_Cells, Mask]:
    """Return the cells with lost leading zeros restored, and which cells those are."""
    lengths = np.diff(offsets(cells.column))
    short = np.zeros(len(lengths), dtype=bool)
    if cells.may_pad is not None:
        short = cells.may_pad & (lengths >= shortest) & (lengths < width)
    if not short.any():
        return cells, short
    padded = pc.if_else(pa.array(short), pc.utf8_lpad(cells.column, width, "0"), cells.column)
    return replace(cells, column=padded), short


def _cpf(cells: _Cells) -> Judged:
    whole, padded = _with_zeros(cells, 1, 11)
    digits, found, repairs = _read(whole, _CPF)
    fits = cpf_digits_fit(digits)
    repairs[Repair.CPF_ZEROS] = padded
    return Judged(digits_column(digits), found & fits, repairs, alike=found & ~fits)


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


def _cep(cells: _Cells) -> Judged:
    whole, padded = _with_zeros(cells, 7, 8)
    digits, found, repairs = _read(whole, _CEP)
    sure = found & (digits[:, :2] > 0).any(axis=1)
    return Judged(digits_column(digits), sure, repairs | {Repair.CEP_ZEROS: padded})


def _phone(cells: _Cells) -> Judged:
    digits, found, repairs = _read(cells, _PHONE)
    return Judged(digits_column(digits), found, repairs)


_DAYS: Final = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])


def _birthdate(cells: _Cells) -> Judged:
    digits, found, repairs = _read(cells, _DATE)
    year, month, day = _number(digits[:, :4]), _number(digits[:, 4:6]), _number(digits[:, 6:])
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    longest = _DAYS[np.minimum(month, 12)] + (leap & (month == 2))
    exists = (year >= 1) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= longest)
    text = np.full((len(digits), 10), ord("-"), np.uint8)
    text[:, [0, 1, 2, 3, 5, 6, 8, 9]] = digits + np.uint8(ord("0"))
    return Judged(column_of(text), found & exists, repairs)


def _number(digits: Bytes) -> npt.NDArray[np.uint16]:
    number = np.zeros(len(digits), dtype=np.uint16)
    for place in range(digits.shape[1]):
        number = number * np.uint16(10) + digits[:, place]
    return number


_LOCAL: Final = r"^[{0}0-9_+-]+(\.[{0}0-9_+-]+)*@"
_DOMAIN: Final = r"([{0}0-9]([{0}0-9]|-[{0}0-9])*\.)+({1})$"
_ENDINGS: Final = ("br", "com", "net", "org", "edu", "gov", "info", "io", "me", "pt")
_EMAIL: Final = _LOCAL.format("a-z") + _DOMAIN.format("a-z", "|".join(_ENDINGS))
_EMAIL_ANY_CASE: Final = _LOCAL.format("A-Za-z") + _DOMAIN.format("A-Za-z", "(?i:" + "|".join(_ENDINGS) + ")")
_EMAIL_LONGEST: Final = 64
"""Bytes; in an address this short neither the part before the @ nor a label of the domain is too long."""


def _email(cells: _Cells) -> Judged:
    column = cells.column
    short = np.asarray(np.diff(offsets(column)) <= _EMAIL_LONGEST)
    sure = _matches(column, _EMAIL) & short
    rest = short & ~sure
    if not rest.any():
        return Judged(column, sure, {})
    # Domains are kept in lower case, the part before the @ as it is, but for names such as INFO or WWW.
    others = column.filter(pa.array(rest))
    usual = _matches(others, _EMAIL_ANY_CASE) & ~_matches(others, _MAILBOX)
    local = pc.replace_substring_regex(others, r"@.*$", "")
    domain = pc.ascii_lower(pc.replace_substring_regex(others, r"^.*@", ""))
    normalised = pc.binary_join_element_wise(local, domain, "@")
    sure[np.flatnonzero(rest)[usual]] = True
    return Judged(pc.replace_with_mask(column, pa.array(rest), normalised), sure, {})


_MAILBOX: Final = "^(?i:" + "|".join(sorted(CASE_INSENSITIVE_MAILBOX_NAMES)) + ")@"


def _matches(column: pa.StringArray, pattern: str) -> Mask:
    return np.asarray(pc.match_substring_regex(column, pattern).to_numpy(zero_copy_only=False))


_JUDGES: Final[Mapping[str, Callable[[_Cells], Judged]]] = {
    "cpf": _cpf,
    "email": _email,
    "birthdate": _birthdate,
    "phoneNumber": _phone,
    "address.neighborhood": _neighborhood,
    "address.installationNumber": _installation,
    "address.zipCode": _cep,
}
"""The fields with a rule of their own; all others are plain text."""
