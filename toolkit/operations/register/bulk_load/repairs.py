"""Repair one cell where the value that was meant is certain; the contract judges everything else.

``columns`` repairs the usual ways of writing for whole columns at once and must give the same values; what it
does not know comes here.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from typing import Final

import pyarrow as pa

from toolkit.domain.fields import TRIMMED
from toolkit.operations.register.bulk_load.options import LoadOptions, Repair
from toolkit.operations.spreadsheets import CellKind, Chunk

Repaired = tuple[str, tuple[Repair, ...]]

_CPF: Final = re.compile(r"'?([0-9]{3})[. ]?([0-9]{3})[. ]?([0-9]{3})[-./ ]?([0-9]{2})")
_CEP: Final = re.compile(r"'?([0-9]{2})[. ]?([0-9]{3})[- ]?([0-9]{3})")
_PHONE: Final = re.compile(r"'?((?:\+|00)?55)?\(?([0-9]{2})\)?[-.]?([0-9]{5})[-.]?([0-9]{4})")
_DAY_FIRST: Final = re.compile(r"([0-9]{1,2})/([0-9]{1,2})/([0-9]{4})")
_MIDNIGHT: Final = re.compile(r"[T ]0?0:00(:00([.,]0+)?)?$")
_DAY_NUMBER: Final = re.compile(r"[1-7][0-9]{4}")

_SPACES: Final = re.compile(f"[{re.escape(TRIMMED)}]+")
_INVISIBLE: Final = re.compile("[\u200b\u200c\u200d\u2060\ufeff]")
"""Characters without width, which nobody means to write into a number or a date."""

EXCEL_EPOCH: Final = date(1899, 12, 30)
"""The day before Excel's day 1, moved by the leap day of 1900 that Excel invents."""
LAST_DAY_NUMBER: Final = (date(2099, 12, 31) - EXCEL_EPOCH).days
"""Day numbers from 10000 (1927) to here are dates; shorter ones may be a year or a shortened date."""
EPOCH_OF_1904: Final = date(1904, 1, 1)

NUMBERS: Final = (CellKind.NUMBER, CellKind.NUMBER_1904)


def repair(name: str, text: str, kind: CellKind, options: LoadOptions) -> Repaired:
    """Return the text of field ``name`` as the contract wants it, and what was done to it.

    With ``options.strict`` the cell comes back as it is.
    """
    if options.strict:
        return text, ()
    repairs_of_field = _REPAIRS.get(name)
    tidy = text.strip(TRIMMED)
    if repairs_of_field is not None:
        tidy = _SPACES.sub(" ", _INVISIBLE.sub("", tidy)).strip()
    outer = () if tidy == text else (Repair.WHITE_SPACE,)
    if repairs_of_field is None:
        return tidy, outer
    repaired, repairs = repairs_of_field(tidy, kind, options)
    return repaired, outer + repairs


def _cpf(text: str, kind: CellKind, options: LoadOptions) -> Repaired:
    if text.isascii() and text.isdigit():
        if len(text) < 11 and (kind in NUMBERS or options.pad_cpf):
            return text.zfill(11), (Repair.CPF_ZEROS,)
        return text, ()
    found = _CPF.fullmatch(text)
    return ("".join(found.groups()), (Repair.CPF_MASK,)) if found else (text, ())


def _cep(text: str, kind: CellKind, options: LoadOptions) -> Repaired:
    if text.isascii() and text.isdigit():
        if len(text) == 7 and (kind in NUMBERS or options.pad_cpf):
            return text.zfill(8), (Repair.CEP_ZEROS,)
        return text, ()
    found = _CEP.fullmatch(text)
    return ("".join(found.groups()), (Repair.CEP_MASK,)) if found else (text, ())


def _phone(text: str, kind: CellKind, options: LoadOptions) -> Repaired:  # noqa: ARG001  # as all repairs
    if len(text) == 11 and text.isascii() and text.isdigit():
        return text, ()
    found = _PHONE.fullmatch(text.replace(" ", ""))
    if found is None:
        return text, ()
    country, *parts = found.groups()
    digits = "".join(parts)
    mask = () if text in (digits, f"{country}{digits}") else (Repair.PHONE_MASK,)
    return digits, mask + ((Repair.PHONE_COUNTRY_CODE,) if country else ())


def _birthdate(text: str, kind: CellKind, options: LoadOptions) -> Repaired:  # noqa: ARG001  # as all repairs
    day, midnight = _MIDNIGHT.subn("", text)
    repairs = (Repair.DATE_MIDNIGHT,) if midnight else ()
    found = _DAY_FIRST.fullmatch(day)
    if found:
        day_of_month, month, year = found.groups()
        return f"{year}-{month:0>2}-{day_of_month:0>2}", (Repair.DATE_DAY_FIRST, *repairs)
    if _DAY_NUMBER.fullmatch(text) and int(text) <= LAST_DAY_NUMBER:
        epoch = EPOCH_OF_1904 if kind is CellKind.NUMBER_1904 else EXCEL_EPOCH
        return (epoch + timedelta(days=int(text))).isoformat(), (Repair.EXCEL_DATE,)
    return day, repairs


_REPAIRS: Final[dict[str, Callable[[str, CellKind, LoadOptions], Repaired]]] = {
    "cpf": _cpf,
    "address.zipCode": _cep,
    "phoneNumber": _phone,
    "birthdate": _birthdate,
}


def with_days_from_1900(chunk: Chunk, column: int) -> Chunk:
    """Return the chunk with the day numbers of a column counted from 1900, as all files do that a load writes."""
    kinds = chunk.kinds.get(column)
    if kinds is None or not (kinds == CellKind.NUMBER_1904).any():
        return chunk
    columns = list(chunk.columns)
    columns[column] = pa.array(
        [
            str(int(text) + (EPOCH_OF_1904 - EXCEL_EPOCH).days)
            if kind == CellKind.NUMBER_1904 and _DAY_NUMBER.fullmatch(text)
            else text
            for text, kind in zip(columns[column].to_pylist(), kinds, strict=True)
        ],
        pa.string(),
    )
    return replace(chunk, columns=columns)
