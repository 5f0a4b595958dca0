"""Turn a request body into a model, or into the contract's list of invalid fields."""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from toolkit.domain.fields import REQUIRED
from toolkit.errors import InvalidField, InvalidFields

M = TypeVar("M", bound="RequestModel")

_OF_OBJECTS = {"model_type", "model_attributes_type", "dict_type"}


class RequestModel(BaseModel):
    """A request body: contract names outside, Python names inside, unknown fields ignored."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="ignore",
        frozen=True,
        hide_input_in_errors=True,
    )


def parse(model: type[M], body: Mapping[str, Any]) -> M:
    """Validate ``body`` (contract names) as ``model``.

    Raises:
        InvalidFields: with every invalid field at once, nested names dotted (``address.zipCode``).
    """
    try:
        return model.model_validate(body, by_alias=True, by_name=False)
    except ValidationError as error:
        raise InvalidFields(invalid_fields(error)) from None


def invalid_fields(error: ValidationError) -> list[InvalidField]:
    """Return the contract's reading of a pydantic error: one entry per field, none with its value."""
    found: dict[str, InvalidField] = {}
    for detail in error.errors(include_url=False, include_context=False):
        name = ".".join(str(part) for part in detail["loc"])
        no_object = detail["type"] in _OF_OBJECTS
        absent = detail["type"] == "missing" or (no_object and detail["input"] is None)
        reason = REQUIRED if absent else "Must be an object" if no_object else detail["msg"]
        found.setdefault(name, InvalidField(name, reason))
    return list(found.values())
