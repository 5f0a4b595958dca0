"""Read a TOML file into a model; a mistake is named with the file, the line, the field and the reason."""

import re
import tomllib
from collections.abc import Sequence
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from toolkit.errors import SettingsError, UnreadableFile

M = TypeVar("M", bound=BaseModel)


def read_toml(path: Path | Traversable, name: object, model: type[M]) -> tuple[M, str]:
    """Return what the file holds, and its text; ``name`` is what messages call the file.

    Raises:
        UnreadableFile: it cannot be read as TOML.
        SettingsError: naming the file, the line, the field and the reason.
    """
    try:
        text = path.read_text("utf-8")
        given = tomllib.loads(text)
    except OSError as error:
        raise UnreadableFile("{} cannot be read: {}.", name, error.strerror or "unknown reason") from None
    except ValueError as error:
        raise UnreadableFile("{} cannot be read as a TOML file: {}", name, str(error)) from None
    try:
        return model.model_validate(given), text
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_input=False)[0]
        where = [*wrong["loc"]]
        raise SettingsError(
            "{}, line {}: {}: {}", name, line_of(text, where), ".".join(map(str, where)), wrong["msg"]
        ) from None


def line_of(text: str, where: Sequence[Any]) -> int:
    """Return the number of the line on which a field stands, or the table that should have it.

    ``where`` leads to the field: its name, or the name of an array of tables, a number from 0 and the name.
    """
    lines, start, table = text.splitlines(), 0, None
    names = [each for each in where if isinstance(each, str)]
    if len(where) > 1 and isinstance(where[1], int):
        table = re.compile(rf"^\s*\[\[\s*{re.escape(str(where[0]))}\s*\]\]")
        tables = [number for number, line in enumerate(lines) if table.match(line)]
        start = tables[where[1]] if where[1] < len(tables) else 0
        names = names[1:]
    for number, line in enumerate(lines[start:], start):
        if table is not None and number > start and table.match(line):
            break
        if names and re.match(rf"\s*[\"']?{re.escape(names[0])}[\"']?\s*=", line):
            return number + 1
    return start + 1
