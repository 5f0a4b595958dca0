"""The fields of a client as columns of a spreadsheet, taken from the contract's model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import BaseModel, TypeAdapter, ValidationError

from toolkit.contract.clients import Address, Client
from toolkit.contract.fields import reason_of
from toolkit.errors import InvalidInput, UnreadableFile
from toolkit.intake.tables import plain
from toolkit.message import Message


@dataclass(frozen=True)
class Field:
    """One field: its name in the contract (dotted), its column in the database, and its rule."""

    name: str
    column: str
    required: bool
    rule: TypeAdapter[Any]

    def check(self, text: str | None) -> str | None:
        """Return the normalised value.

        Raises:
            Invalid: with the contract's reason.
        """
        try:
            value = self.rule.validate_python(text)
        except ValidationError as error:
            raise Invalid(reason_of(error.errors(include_url=False, include_input=False)[0])) from None
        return None if value is None else str(value)


class Invalid(Exception):
    """A cell breaks the rule of its field."""


def _fields(model: type[BaseModel], prefix: str = "") -> list[Field]:
    return [
        Field(
            name=f"{prefix}{info.alias}",
            column=column,
            required=info.is_required(),
            rule=TypeAdapter(Annotated[(info.annotation, *info.metadata)]),  # type: ignore[arg-type]  # a type
        )
        for column, info in model.model_fields.items()
        if info.annotation is not Address
    ]


FIELDS: Final = (*_fields(Client), *_fields(Address, "address."))
"""In the order of the contract."""

FIELD: Final = {field.name: field for field in FIELDS}


PORTUGUESE: Final = {
    "externalId": ("ID externo",),
    "cpf": ("CPF/CNPJ", "CPF do cliente"),
    "numberOnDealership": (
        "número na distribuidora",
        "código do cliente",
        "código do cliente na distribuidora",
        "cód. cliente distribuidora",
    ),
    "enrollment": ("matrícula",),
    "firstName": ("nome",),
    "lastName": ("sobrenome",),
    "email": ("e-mail",),
    "birthdate": ("data de nascimento", "nascimento", "dt. nasc.", "dt. nascimento"),
    "phoneNumber": ("telefone", "celular"),
    "address.neighborhood": ("bairro",),
    "address.installationNumber": ("número da instalação", "instalação", "nº instalação", "nº da instalação"),
    "address.address": ("endereço", "logradouro", "rua"),
    "address.addressNumber": ("número", "nº", "núm."),
    "address.city": ("cidade", "município"),
    "address.zipCode": ("CEP",),
}

WHOLE_NAMES: Final = ("nome completo", "nome do cliente", "cliente", "full name")
"""Headings of whole names, which cannot be split into first and last name for sure."""

IGNORED: Final = "-"
"""The field that a heading is mapped to when its column is to be ignored."""

_ENOUGH: Final = 3
"""The number of known headings from which on a row counts as the headings."""

_DIGITS_OF_DATA: Final = 4
"""The number of digits from which on a cell is data and no heading."""


_NAMES: Final = {name: field.name for field in FIELDS for name in (field.name, field.name.rpartition(".")[2])}
"""The fields by their names in the contract, with and without the part before the dot."""

KNOWN: Final = {plain(name): field for name, field in _NAMES.items()} | {
    plain(heading): name for name, headings in PORTUGUESE.items() for heading in headings
}
"""Every heading that is understood by itself."""


class Headings:
    """The headings that are understood in one load: those the analyst maps, then the known ones."""

    def __init__(self, mapped: Mapping[str, str]) -> None:
        """Take over the analyst's mapping.

        Raises:
            InvalidInput: it names a field that there is none of.
        """
        self._mapped = {plain(heading): self._field(name) for heading, name in mapped.items()}

    @staticmethod
    def _field(name: str) -> str:
        if name == IGNORED or name in _NAMES:
            return _NAMES.get(name, name)
        listed = ", ".join(field.name for field in FIELDS)
        raise InvalidInput("There is no field {} to map a heading to; there are {}.", name, listed)

    def recognise(self, cells: Sequence[str]) -> bool:
        """Tell whether a row of cells can only be the headings."""
        return len({name for cell in cells if (name := self._name(cell))}) >= _ENOUGH

    def columns(self, source: str, line: int, headings: Sequence[str]) -> dict[str, int]:
        """Return the position of the column of each field that the file has.

        Raises:
            UnreadableFile: a required field has no heading, or a field has two.
        """
        found: dict[str, int] = {}
        mapped = {self._mapped.get(plain(heading)) for heading in headings}
        for position, heading in enumerate(headings):
            name = self._name(heading)
            if name is None or (name in mapped and plain(heading) not in self._mapped):
                continue
            if name in found:
                raise UnreadableFile(
                    "{}: {} and {} on line {} both stand for {}; remove one column, or ignore it: --map HEADING=-",
                    source,
                    headings[found[name]],
                    heading,
                    line,
                    name,
                )
            found[name] = position
        missing = [field.name for field in FIELDS if field.required and field.name not in found]
        if missing:
            listed = ", ".join(self._quotable(headings))
            seen = (
                Message("Found on line {}: {}", line, listed)
                if listed
                else Message("No heading on line {} is known", line)
            )
            advice = Message("Rename the headings, or say what they mean: --map HEADING=field.")
            whole = [heading for heading in headings if plain(heading) in map(plain, WHOLE_NAMES)]
            if whole and {"firstName", "lastName"} & set(missing):
                advice = Message(
                    "{} holds the first and the last name together, and where one ends is not guessed: "
                    "write them into two columns, nome and sobrenome. {}",
                    whole[0],
                    advice,
                )
            raise UnreadableFile("{}: no heading for {}. {}. {}", source, ", ".join(missing), seen, advice)
        return found

    def understood_without_map(self, headings: Sequence[str], columns: Mapping[str, int]) -> tuple[str, ...]:
        """Return the headings that rejected rows have, which need no mapping when they are loaded.

        A mapped heading becomes its field's name, and one that is ignored says so.
        """
        fields = {position: name for name, position in columns.items()}
        written = []
        for position, heading in enumerate(headings):
            name = fields.get(position)
            if name is not None and KNOWN.get(plain(heading)) != name:
                written.append(name)
            elif name is None and plain(heading) in KNOWN:
                written.append(f"{heading} (not used)")
            else:
                written.append(heading)
        return tuple(written)

    def _quotable(self, headings: Sequence[str]) -> list[str]:
        """Return the headings that may be quoted: in a file without headings the first row is a person's."""
        known = [heading for heading in headings if self._name(heading)]
        return (
            [heading for heading in headings if heading] if known and not any(map(_is_data, headings)) else known
        )

    def _name(self, heading: str) -> str | None:
        key = plain(heading)
        name = self._mapped.get(key) or KNOWN.get(key)
        return None if name == IGNORED else name


def _is_data(cell: str) -> bool:
    return "@" in cell or sum(letter.isdigit() for letter in cell) >= _DIGITS_OF_DATA
