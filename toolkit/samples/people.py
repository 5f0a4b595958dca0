"""Invent clients: names from short lists, numbers from a seed, addresses that do not exist.

CPFs have valid check digits, because the field rules ask for them; whom such a number belongs to, if to
anybody, is as unknown here as for any other eleven digits.
"""

import unicodedata
from dataclasses import dataclass
from datetime import date, timedelta
from random import Random
from typing import Final

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


@dataclass(frozen=True, slots=True)
class Person:
    """A client as the contract normalises it: CPF, CEP and phone as digits; ``""`` where a field is absent."""

    external_id: str
    cpf: str
    rg: str
    number_on_dealership: str
    enrollment: str
    first_name: str
    last_name: str
    email: str
    birthdate: date
    phone: str
    neighborhood: str
    installation_number: str
    address: str
    address_number: str
    city: str
    zip_code: str


def make_people(count: int, prefix: str, random: Random) -> list[Person]:
    """Return ``count`` valid clients whose ``externalId`` starts with ``prefix``; every eighth CPF has a zero."""
    return [_person(f"{prefix}-{number:05d}", number, random) for number in range(1, count + 1)]


def _person(external_id: str, number: int, random: Random) -> Person:
    first, last = random.choice(_FIRST_NAMES), random.choice(_LAST_NAMES)
    city, area_code, *zip_codes = random.choice(_CITIES)
    mailbox = f"{_ascii(first)}.{_ascii(last)}{random.randrange(10, 99)}"
    return Person(
        external_id=external_id,
        cpf=make_cpf(random.randrange(10_000_000, 99_999_999 if number % 8 == 0 else 999_999_999)),
        rg=f"{random.randrange(1_000_000, 60_000_000)}-{random.randrange(10)}",
        number_on_dealership=str(random.randrange(10_000_000, 99_999_999)),
        enrollment=str(random.randrange(100_000, 999_999)),
        first_name=first,
        last_name=last,
        email=f"{mailbox}@example.com" if random.random() < 0.8 else "",
        birthdate=date(1945, 1, 1) + timedelta(days=random.randrange(60 * 365)),
        phone=f"{area_code}9{random.randrange(60_000_000, 99_999_999)}" if random.random() < 0.9 else "",
        neighborhood=random.choice(_NEIGHBORHOODS),
        installation_number=str(random.randrange(1_000_000, 9_999_999_999)),
        address=random.choice(_STREETS),
        address_number=str(random.randrange(1, 2400)),
        city=city,
        zip_code=f"{random.randrange(*zip_codes):08d}",
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
