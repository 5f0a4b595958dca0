"""Which field each heading of a file stands for, and the fields of a client, taken from the contract's model."""

import unicodedata
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import BaseModel, TypeAdapter

from toolkit.contract.resources import Address, Client
from toolkit.errors import InvalidInput, UnreadableFile
from toolkit.message import Message


@dataclass(frozen=True)
class Field:
    """One field: its name in the contract (dotted), its column in the database, and its rule."""

    name: str
    column: str
    required: bool
    rule: TypeAdapter[Any]


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


FIELDS: Final = (*_fields(Client), *_fields(Address, "address."))  # in the order of the contract

IGNORED: Final = "-"  # the field that a heading is mapped to when its column is to be ignored
_ENOUGH: Final = 3  # the number of known headings from which on a row counts as the headings
_DIGITS_OF_DATA: Final = 4  # the number of digits from which on a cell is data and no heading


class Headings:
    """The headings that are understood in one kind of file, in any case, without accents and punctuation."""

    def __init__(
        self,
        fields: Mapping[str, Sequence[str]],
        optional: Container[str] = (),
        mapped: Mapping[str, str] | None = None,
    ) -> None:
        """Know the names of the fields, other headings of each, and before all what an analyst has ``mapped``.

        Raises:
            InvalidInput: a heading is mapped to a field that there is none of.
        """
        self._names, self._optional = tuple(fields), optional
        self._known = {plain(heading): name for name, others in fields.items() for heading in (name, *others)}
        self._mapped = {plain(heading): self._field(name) for heading, name in (mapped or {}).items()}

    def _field(self, name: str) -> str:
        found = IGNORED if name == IGNORED else self._known.get(plain(name))
        if found is None:
            listed = ", ".join(self._names)
            raise InvalidInput("There is no field {} to map a heading to; there are {}.", name, listed)
        return found

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
                first = headings[found[name]]
                raise UnreadableFile(
                    "{}: {} and {} on line {} both stand for {}; remove one column.",
                    *(source, first, heading, line, name),
                )
            found[name] = position
        missing = [name for name in self._names if name not in found and name not in self._optional]
        if missing:
            listed = ", ".join(self._quotable(headings))
            seen = (
                Message("Found on line {}: {}", line, listed)
                if listed
                else Message("No heading on line {} is known", line)
            )
            raise UnreadableFile(
                "{}: no heading for {}. {}. The fields are {}; rename the headings.",
                *(source, ", ".join(missing), seen, ", ".join(self._names)),
            )
        return found

    def understood_without_map(self, headings: Sequence[str], columns: Mapping[str, int]) -> tuple[str, ...]:
        """Return the headings that rejected rows have, which need no mapping when they are loaded.

        A mapped heading becomes its field's name, and one that is ignored says so.
        """
        fields = {position: name for name, position in columns.items()}
        named = ((heading, fields.get(position)) for position, heading in enumerate(headings))
        return tuple(
            heading if self._known.get(plain(heading)) == name else name or f"{heading} (not used)"
            for heading, name in named
        )

    def _quotable(self, headings: Sequence[str]) -> list[str]:
        """Return the headings that may be quoted: in a file without headings the first row is a person's."""
        known = [heading for heading in headings if self._name(heading)]
        data = ("@" in cell or sum(map(str.isdigit, cell)) >= _DIGITS_OF_DATA for cell in headings)
        return [heading for heading in headings if heading] if known and not any(data) else known

    def _name(self, heading: str) -> str | None:
        key = plain(heading)
        name = self._mapped.get(key) or self._known.get(key)
        return None if name == IGNORED else name


def plain(heading: str) -> str:
    """Return a heading without case, accents, punctuation and white space."""
    letters = unicodedata.normalize("NFKD", heading).casefold()
    return "".join(letter for letter in letters if letter.isalnum())


_PORTUGUESE: Final[Mapping[str, tuple[str, ...]]] = {
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
    "birthdate": ("data de nascimento", "nascimento", "dt. nasc.", "dt. nascimento"),
    "phoneNumber": ("telefone", "celular"),
    "address.neighborhood": ("bairro",),
    "address.installationNumber": ("número da instalação", "instalação", "nº instalação", "nº da instalação"),
    "address.address": ("endereço", "logradouro", "rua"),
    "address.addressNumber": ("número", "nº", "núm."),
    "address.city": ("cidade", "município"),
    "address.zipCode": ("CEP",),
}


def client_headings(mapped: Mapping[str, str]) -> Headings:
    """Return the headings of client files: the contract's names, with and without the part before the dot.

    Raises:
        InvalidInput: a heading is mapped to a field that there is none of.
    """
    fields = {each.name: (each.name.rpartition(".")[2], *_PORTUGUESE.get(each.name, ())) for each in FIELDS}
    return Headings(fields, [each.name for each in FIELDS if not each.required], mapped)
