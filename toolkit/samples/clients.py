"""Invent clients: names from short lists, numbers from a seed, addresses that do not exist.

CPFs have valid check digits, because the field rules ask for them; whom such a number belongs to, if to
anybody, is as unknown here as for any other eleven digits.
"""

import csv
import io
import unicodedata
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path
from random import Random
from typing import Any, Final

import pyarrow as pa

from toolkit.contract.resources import Address, Client
from toolkit.intake.checks import EXCEL_EPOCH
from toolkit.intake.workbook_writer import Cells, Form, SheetLooks, Style, Workbook

_FIRST_NAMES: Final = (
    "Ana", "Antônio", "Beatriz", "Bruno", "Camila", "Carlos", "Cláudia", "Conceição", "Débora", "Diego",
    "Eduardo", "Fátima", "Felipe", "Fernanda", "Flávio", "Gabriela", "Gonçalo", "Helena", "Inês", "João",
    "José", "Júlia", "Larissa", "Letícia", "Luís", "Márcia", "Marcos", "Mônica", "Otávio", "Patrícia",
    "Paulo", "Rafael", "Renata", "Sérgio", "Sônia", "Tânia", "Thiago", "Vânia", "Vinícius", "Zélia",
)  # fmt: skip
_LAST_NAMES: Final = (
    "Almeida", "Alves", "Araújo", "Assunção", "Barbosa", "Batista", "Brandão", "Cardoso", "Carvalho", "Costa",
    "Dias", "Falcão", "Fernandes", "Ferreira", "Figueirêdo", "Galvão", "Gomes", "Gonçalves", "Guimarães", "Leão",
    "Lima", "Lopes", "Magalhães", "Martins", "Mendonça", "Moraes", "Nogueira", "Oliveira", "Pereira", "Rocha",
    "Sá", "Santos", "Simões", "Souza", "Teixeira", "Vasconcelos",
)  # fmt: skip
_STREETS: Final = (
    "Rua das Acácias", "Rua dos Ipês", "Avenida das Palmeiras", "Rua do Comércio", "Travessa da Paz",
    "Rua São João", "Avenida da Independência", "Rua Sete de Setembro", "Alameda dos Jacarandás", "Rua da Estação",
)  # fmt: skip
_NEIGHBORHOODS: Final = (
    "Centro", "Jardim América", "Vila Nova", "Boa Vista", "Santo Antônio", "São José", "Jardim das Flores",
    "Parque Industrial", "Conceição", "Bela Vista", "Água Verde", "Santa Luzia",
)  # fmt: skip
_CITIES: Final = (
    ("São Paulo", "11", 1001000, 5899999),
    ("Campinas", "19", 13010000, 13139999),
    ("Belo Horizonte", "31", 30110000, 31999999),
    ("Uberlândia", "34", 38400000, 38415999),
    ("Curitiba", "41", 80010000, 82999999),
    ("Goiânia", "62", 74001000, 74899999),
    ("Recife", "81", 50010000, 52999999),
    ("Fortaleza", "85", 60010000, 61599999),
)
"""Each city with its area code, its first and its last postal code."""


def make_people(count: int, prefix: str, random: Random) -> list[Client]:
    """Return ``count`` clients whose ``externalId`` starts with ``prefix``; every eighth CPF has a zero."""
    return [_person(f"{prefix}-{number:05d}", number, random) for number in range(1, count + 1)]


def _person(external_id: str, number: int, random: Random) -> Client:
    first, last = random.choice(_FIRST_NAMES), random.choice(_LAST_NAMES)
    city, area_code, *zip_codes = random.choice(_CITIES)
    mailbox = f"{_ascii(first)}.{_ascii(last)}{random.randrange(10, 99)}"
    return Client(
        external_id=external_id,
        cpf=make_cpf(random.randrange(10_000_000, 99_999_999 if number % 8 == 0 else 999_999_999)),
        rg=f"{random.randrange(1_000_000, 60_000_000)}-{random.randrange(10)}",
        number_on_dealership=str(random.randrange(10_000_000, 99_999_999)),
        enrollment=str(random.randrange(100_000, 999_999)),
        first_name=first,
        last_name=last,
        email=f"{mailbox}@example.com" if random.random() < 0.8 else None,
        birthdate=date(1945, 1, 1) + timedelta(days=random.randrange(60 * 365)),
        phone_number=f"{area_code}9{random.randrange(60_000_000, 99_999_999)}" if random.random() < 0.9 else None,
        address=Address(
            neighborhood=random.choice(_NEIGHBORHOODS),
            installation_number=str(random.randrange(1_000_000, 9_999_999_999)),
            address=random.choice(_STREETS),
            address_number=str(random.randrange(1, 2400)),
            city=city,
            zip_code=f"{random.randrange(*zip_codes):08d}",
        ),
    )


def make_cpf(base: int) -> str:
    """Return the CPF of 11 digits whose first nine are ``base``, with the check digits that belong to them."""
    digits = [int(digit) for digit in f"{base:09d}"]
    for _ in range(2):
        weighted = sum(digit * weight for digit, weight in zip(digits, range(len(digits) + 1, 1, -1), strict=True))
        digits.append(weighted * 10 % 11 % 10)
    return "".join(map(str, digits))


def _ascii(name: str) -> str:
    decomposed = unicodedata.normalize("NFD", name)
    return "".join(letter for letter in decomposed if letter.isascii()).lower()


CSV_HEADINGS: Final = (
    "ID externo", "CPF", "RG", "Número na distribuidora", "Matrícula", "Nome", "Sobrenome", "E-mail",
    "Data de nascimento", "Telefone", "Bairro", "Número da instalação", "Endereço", "Número", "Cidade", "CEP",
)  # fmt: skip
XLSX_HEADINGS: Final = (
    "ID Externo", "cpf", "RG", "Código do cliente", "Matrícula", "Nome", "Sobrenome", "Email",
    "Nascimento", "Celular", "Bairro", "Instalação", "Logradouro", "Número", "Município", "Cep",
)  # fmt: skip
"""Both in the order of the contract."""

_NUMBERS: Final = (
    *("cpf", "number_on_dealership", "enrollment", "phone_number"),
    *("installation_number", "address_number", "zip_code"),
)
"""The fields that a workbook holds as numbers."""

_BLANK_ROW_EVERY: Final = 25

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


def write_csv(path: Path, people: Sequence[Client], wrong: Sequence[Client], random: Random) -> None:
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


def _values(person: Client) -> dict[str, Any]:
    return person.model_dump(exclude={"address"}) | person.address.model_dump()


def _csv_cells(person: Client, random: Random) -> list[Any]:
    masked = random.random() < 0.7
    spaces = "\u00a0" if random.random() < 0.05 else " " if random.random() < 0.05 else ""
    written = _values(person) | {
        "first_name": person.first_name + spaces,
        "last_name": spaces + person.last_name,
        "birthdate": f"{person.birthdate:%d/%m/%Y}" if random.random() < 0.9 else person.birthdate.isoformat(),
        "phone_number": person.phone_number and _written_phone(person.phone_number, random),
    }
    if masked:
        cpf, cep = person.cpf, person.address.zip_code
        written |= {"cpf": f"{cpf[:3]}.{cpf[3:6]}.{cpf[6:9]}-{cpf[9:]}", "zip_code": f"{cep[:5]}-{cep[5:]}"}
    return list(written.values())


def _written_phone(phone: str, random: Random) -> str:
    local = f"{phone[2:7]}-{phone[7:]}"
    return random.choice([f"({phone[:2]}) {local}", f"({phone[:2]}) {local}", phone, f"+55 {phone[:2]} {local}"])


def write_xlsx(path: Path, people: Sequence[Client], wrong: Sequence[Client]) -> None:
    """Write a workbook as Excel leaves it: CPF and CEP as numbers without their leading zeros, and real dates.

    The first of ``wrong`` has no CPF, the others have one that fits no check digits.
    """
    book = Workbook(path)
    book.begin_sheet("Clientes", SheetLooks([16] * len(XLSX_HEADINGS)))
    book.add_row(*XLSX_HEADINGS, style=Style.HEADING)
    broken = [
        person.model_copy(update={"cpf": "98765432199" if number else None}) for number, person in enumerate(wrong)
    ]
    rows = [_values(each) for each in (*people[: len(people) // 2], *broken, *people[len(people) // 2 :])]
    book.add([_cells(name, [row[name] for row in rows]) for name in rows[0]])
    book.close()


def _cells(name: str, column: Sequence[Any]) -> Cells:
    if name == "birthdate":
        days = [(day - EXCEL_EPOCH).days for day in column]
        return Cells(pa.array(days).cast(pa.string()), Form.NUMBER, Style.DAY)
    if name in _NUMBERS:
        return Cells(pa.array([value and str(int(value)) for value in column]), Form.NUMBER)
    return Cells(pa.array(column, pa.string()))
