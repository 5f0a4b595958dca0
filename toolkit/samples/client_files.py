"""Write client lists as partners send them: a CSV and an XLSX of a Brazilian Excel, with some wrong rows."""

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import date
from pathlib import Path
from random import Random
from typing import Final

import pyarrow as pa

from toolkit.operations.spreadsheets.xlsx_parts import Looks, Style
from toolkit.operations.spreadsheets.xlsx_writer import Cells, Form, Workbook
from toolkit.samples.people import Person

CSV_HEADINGS: Final = (
    "ID externo", "CPF", "RG", "Número na distribuidora", "Matrícula", "Nome", "Sobrenome", "E-mail",
    "Data de nascimento", "Telefone", "Bairro", "Número da instalação", "Endereço", "Número", "Cidade", "CEP",
)  # fmt: skip
XLSX_HEADINGS: Final = (
    "ID Externo", "cpf", "RG", "Código do cliente", "Matrícula", "Nome", "Sobrenome", "Email",
    "Nascimento", "Celular", "Bairro", "Instalação", "Logradouro", "Número", "Município", "Cep",
)  # fmt: skip
"""Both in the order of the fields of a ``Person``."""

_NUMBERS: Final = frozenset(
    ("cpf", "number_on_dealership", "enrollment", "phone", "installation_number", "address_number", "zip_code")
)
"""The fields that a workbook holds as numbers."""

_BLANK_ROW_EVERY: Final = 25
_FIRST_DAY: Final = date(1899, 12, 30)
"""The day that a workbook numbers 0."""


DEFECTS: Final = (
    ("CPF", "123.456.789-00"),  # the check digits do not fit
    ("CPF", "3,45678E+10"),  # Excel turned the CPF into scientific notation; its digits are lost
    ("Data de nascimento", "12/13/1987"),  # there is no month 13
    ("Bairro", "Sé"),  # shorter than the three characters that the contract asks for
    ("Sobrenome", ""),  # a required cell is empty
    ("E-mail", "maria.example.com"),  # no @
    ("Telefone", "(11) 3456-7890"),  # ten digits, where the contract asks for eleven
    ("Número da instalação", "12345"),  # shorter than seven characters
    ("CEP", "1310-100"),  # seven digits in a text cell
)
"""Usual mistakes, one for each row of the CSV that must be rejected: the heading of a cell, and what it holds."""


def write_csv(path: Path, people: Sequence[Person], wrong: Sequence[Person], random: Random) -> None:
    """Write a CSV with ``;``, cp1252, masks, slashed dates, blank rows and a repeated row, and all defects."""
    rows = [_csv_cells(person, random) for person in people]
    for number, person in enumerate(wrong):
        heading, value = DEFECTS[number % len(DEFECTS)]
        cells = _csv_cells(person, random)
        cells[CSV_HEADINGS.index(heading)] = value
        rows.insert((number + 1) * len(rows) // (len(wrong) + 1), cells)
    rows.append(rows[0])
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=";", lineterminator="\r\n")
    writer.writerow(CSV_HEADINGS)
    for number, cells in enumerate(rows, start=1):
        writer.writerow(cells)
        if number % _BLANK_ROW_EVERY == 0:
            writer.writerow([""] * len(CSV_HEADINGS))
    path.write_bytes(text.getvalue().encode("cp1252"))


def _csv_cells(person: Person, random: Random) -> list[str]:
    masked = random.random() < 0.7
    spaces = "\u00a0" if random.random() < 0.05 else " " if random.random() < 0.05 else ""
    written = asdict(person) | {
        "first_name": person.first_name + spaces,
        "last_name": spaces + person.last_name,
        "birthdate": f"{person.birthdate:%d/%m/%Y}" if random.random() < 0.9 else person.birthdate.isoformat(),
        "phone": _written_phone(person.phone, random),
    }
    if masked:
        cpf, cep = person.cpf, person.zip_code
        written |= {"cpf": f"{cpf[:3]}.{cpf[3:6]}.{cpf[6:9]}-{cpf[9:]}", "zip_code": f"{cep[:5]}-{cep[5:]}"}
    return list(written.values())


def _written_phone(phone: str, random: Random) -> str:
    if not phone:
        return ""
    local = f"{phone[2:7]}-{phone[7:]}"
    return random.choice([f"({phone[:2]}) {local}", f"({phone[:2]}) {local}", phone, f"+55 {phone[:2]} {local}"])


def write_xlsx(path: Path, people: Sequence[Person], wrong: Sequence[Person]) -> None:
    """Write a workbook as Excel leaves it: CPF and CEP as numbers without their leading zeros, and real dates.

    The first of ``wrong`` has no CPF, the others have one that fits no check digits.
    """
    book = Workbook(path)
    book.begin_sheet("Clientes", Looks([16] * len(XLSX_HEADINGS)))
    book.add_row(*XLSX_HEADINGS, style=Style.HEADING)
    broken = [replace(person, cpf="98765432199" if number else "") for number, person in enumerate(wrong)]
    rows = [*people[: len(people) // 2], *broken, *people[len(people) // 2 :]]
    book.add([_cells(column) for column in zip(*map(_xlsx_cells, rows), strict=True)])
    book.close()


def _cells(column: Sequence[str | int | date]) -> Cells:
    """Return days and numbers as such; an empty text leaves its cell empty."""
    if any(isinstance(value, date) for value in column):
        days = [(value - _FIRST_DAY).days if isinstance(value, date) else None for value in column]
        return Cells(pa.array(days).cast(pa.string()), Form.NUMBER, Style.DAY)
    form = Form.NUMBER if any(isinstance(value, int) for value in column) else Form.TEXT
    return Cells(pa.array([str(value) or None for value in column]), form)


def _xlsx_cells(person: Person) -> list[str | int | date]:
    cells = asdict(person)
    return [int(value) if name in _NUMBERS and value else value for name, value in cells.items()]
