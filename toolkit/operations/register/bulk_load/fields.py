"""The fields of a client as columns of a spreadsheet, taken from the contract's model."""

from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import BaseModel, TypeAdapter, ValidationError

from toolkit.domain.clients import Address, Client


@dataclass(frozen=True)
class Field:
    """One field: its name in the contract (dotted), its column in the database, and its rule."""

    name: str
    column: str
    in_address: bool
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
            raise Invalid(
                error.errors(include_url=False, include_context=False, include_input=False)[0]["msg"]
            ) from None
        return None if value is None else str(value)


class Invalid(Exception):
    """A cell breaks the rule of its field."""


def _fields(model: type[BaseModel], prefix: str = "") -> list[Field]:
    return [
        Field(
            name=f"{prefix}{info.alias}",
            column=column,
            in_address=bool(prefix),
            required=info.is_required(),
            rule=TypeAdapter(Annotated[(info.annotation, *info.metadata)]),  # type: ignore[arg-type]  # a type
        )
        for column, info in model.model_fields.items()
        if info.annotation is not Address
    ]


FIELDS: Final = (*_fields(Client), *_fields(Address, "address."))
"""In the order of the contract."""

FIELD: Final = {field.name: field for field in FIELDS}

FIELD_OF: Final = {field.column: field for field in FIELDS}
"""The fields by their columns in the database."""
