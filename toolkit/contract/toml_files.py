"""Read a TOML file into a model; a mistake is named with the file, the line, the field and the reason."""

import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from toolkit.contract.fields import reason_of
from toolkit.errors import SettingsError, UnreadableFile
from toolkit.message import Message

M = TypeVar("M", bound=BaseModel)


class TomlTable(BaseModel):
    """A table of a TOML file: its keys are written with hyphens, and no others are allowed."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, alias_generator=lambda name: name.replace("_", "-"), hide_input_in_errors=True
    )


def read_toml(
    path: Path | Traversable, name: object, model: type[M], context: Mapping[str, Any] | None = None
) -> tuple[M, str]:
    """Return what the file holds, and its text; ``name`` is what messages call the file.

    Raises:
        UnreadableFile: it cannot be read as TOML.
        SettingsError: naming the file, the line, the field and the reason; the value itself may be a secret.
    """
    try:
        text = path.read_text("utf-8")
        given = tomllib.loads(text)
    except OSError as error:
        raise UnreadableFile("{} cannot be read: {}.", name, error.strerror or "unknown reason") from None
    except (ValueError, RecursionError) as error:
        raise UnreadableFile("{} cannot be read as a TOML file: {}", name, broken_at(error)) from None
    try:
        return model.model_validate(given, context=context), text
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        wrong = min(found, key=lambda each: each["type"] != "extra_forbidden")  # perhaps the key that lacks
        where = [part for part in wrong["loc"] if part != "[key]"]
        counted = [part + 1 if isinstance(part, int) else part for part in where]  # as people count
        raise SettingsError(
            "{}, line {}: {}: {}", name, line_of(text, where), ".".join(map(str, counted)), reason_of(wrong)
        ) from None


def broken_at(error: Exception) -> Message:
    """Return the place from which on a text is no TOML."""
    found = re.search(r"at line (\d+), column (\d+)", str(error))
    return Message("wrong at line {}, column {}", *found.groups()) if found else Message("wrong at its end")


def line_of(text: str, where: Sequence[Any]) -> int:
    """Return the number of the line on which a field stands, or the table that should have it.

    ``where`` leads to the field: names, and after that of an array of tables a number from 0.
    """
    best, known = 1, 0
    table: tuple[Any, ...] = ()
    arrays = Counter[tuple[str, ...]]()
    for number, line in enumerate(text.splitlines(), 1):
        begun = re.match(r"\s*(\[{0,2})([^\[\]=#]+)[\]=]", line)
        names = _names(begun[2]) if begun else ()
        if begun and begun[1] and names:
            table = (*names, arrays[names]) if begun[1] == "[[" else names
            arrays[names] += begun[1] == "[["
            names = ()
        place = (*table, *names)
        both = min(len(place), len(where))
        if known < both and tuple(where[:both]) == place[:both]:
            best, known = number, both
    return best


def _names(key: str) -> tuple[str, ...]:
    """Return the parts of a dotted key; none where the text is no key, such as in the middle of a value."""
    found: list[str] = []
    try:
        table = tomllib.loads(f"{key} = 0")
    except ValueError:
        return ()
    while isinstance(table, dict):
        [(name, table)] = table.items()
        found.append(name)
    return tuple(found)
