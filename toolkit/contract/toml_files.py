"""Read a TOML file into a model; a mistake is named with the file, the line, the field and the reason."""

import re
import tomllib
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.resources.abc import Traversable
from io import StringIO
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
        text = path.read_text("utf-8-sig")  # editors of Windows write a mark in front
        given = tomllib.loads(text)
    except OSError as error:
        raise UnreadableFile("{} cannot be read: {}.", name, error.strerror or "unknown reason") from None
    except (ValueError, RecursionError) as error:
        raise UnreadableFile("{} cannot be read as a TOML file: {}", name, _broken_at(error)) from None
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


def _broken_at(error: Exception) -> Message:
    """Return the place from which on a text is no TOML."""
    if isinstance(error, UnicodeDecodeError):
        return Message("save it in UTF-8")
    found = re.search(r"at line (\d+), column (\d+)", str(error))
    return Message("wrong at line {}, column {}", *found.groups()) if found else Message("wrong at its end")


def line_of(text: str, where: Sequence[str | int]) -> int:
    """Return the number of the line on which a field begins, or the table that should have it.

    ``where`` leads to the field: names, and after that of an array a number from 0.
    """
    lines = StringIO(text).readlines()  # what else ends a line to Python ends none in TOML

    def longest(end: int) -> tuple[int, int]:
        """Return the longest text of at most so many lines that is TOML, and how much of ``where`` it has."""
        while True:
            with suppress(ValueError):  # in the middle of a value
                found: Any = tomllib.loads("".join(lines[:end]))
                break
            end -= 1
        depth = 0
        with suppress(LookupError, TypeError):
            for part in where:
                found, depth = found[part], depth + 1
        return end, depth

    _, known = longest(len(lines))
    end = bisect_left(range(len(lines)), known, key=lambda end: longest(end)[1])
    return longest(max(end - 1, 0))[0] + 1
