"""Name the attributes of a value as JSON documents do: in camel case, like the contract's own fields."""

from typing import Any

from pydantic.alias_generators import to_camel


def named(value: object, *names: str) -> dict[str, Any]:
    """Return these attributes of a value by their names in a document: ``sale_id`` as ``saleId``."""
    return {to_camel(name): getattr(value, name) for name in names}
