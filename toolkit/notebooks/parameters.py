"""The parameters of a notebook, read strictly: known names only, and each value of its default's type.

papermill alone would take an unknown name with a warning, turn the text ``00123456789`` into a number, and
keep every value in the executed notebook, secrets too.
"""

import ast
import json
import math
import re
import tokenize
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from io import StringIO
from typing import Any, Final

import nbformat

from toolkit.contract.people import looks_secret
from toolkit.errors import NotebookFailed, SettingsError

Value = str | bool | int | float | list[Any] | dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Parameter:
    """One assignment of the cell tagged ``parameters``: its name, default, and the comment beside it."""

    name: str
    default: Value
    comment: str

    @property
    def described(self) -> str:
        """One line for people: ``name = default   comment``."""
        return f"{self.name} = {self.default!r}" + (f"   {self.comment}" if self.comment else "")


def read_parameters(notebook: nbformat.NotebookNode) -> dict[str, Parameter]:
    """Return the parameters of a notebook, by name, in the order of its cell; none where no cell has the tag.

    Raises:
        NotebookFailed: the cell holds something else than names with literal values.
    """
    for cell in notebook.cells:
        if "parameters" in cell.get("metadata", {}).get("tags", []):
            return {parameter.name: parameter for parameter in _parameters(cell.source)}
    return {}


def _parameters(source: str) -> Iterable[Parameter]:
    try:
        statements = ast.parse(source).body
        comments = _comments(source)
    except (SyntaxError, tokenize.TokenError):
        raise NotebookFailed("The parameters cell of the notebook is not valid Python.") from None
    for statement in statements:
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        value = getattr(statement, "value", None)
        if len(targets) != 1 or not isinstance(targets[0], ast.Name) or value is None:
            raise _no_literal(statement)
        try:
            default = ast.literal_eval(value)
        except ValueError:
            raise _no_literal(statement) from None
        yield Parameter(targets[0].id, default, comments.get(statement.end_lineno or 0, ""))


def _no_literal(statement: ast.stmt) -> NotebookFailed:
    return NotebookFailed(
        f"Line {statement.lineno} of the parameters cell is no plain `name = value`: "
        "a value computed there would not follow the value that a run sets."
    )


def _comments(source: str) -> dict[int, str]:
    tokens = tokenize.generate_tokens(StringIO(source).readline)
    return {token.start[0]: token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT}


def chosen_values(
    parameters: Mapping[str, Parameter], given: Iterable[tuple[str, str]], notebook: str
) -> dict[str, Value]:
    """Return the texts of ``-p NAME VALUE`` as values of the right types; a list may be given item by item.

    Raises:
        SettingsError: an unknown name, a text that is no value of the type, a value given twice, a secret.
    """
    texts: dict[str, list[str]] = {}
    for name, text in given:
        if name not in parameters:
            raise SettingsError(_unknown(name, parameters, notebook))
        _refuse_secret(name, text)
        texts.setdefault(name, []).append(text)
    return {name: _value(parameters[name], written) for name, written in texts.items()}


def fitting_values(
    parameters: Mapping[str, Parameter], given: Mapping[str, Value], notebook: str
) -> dict[str, Value]:
    """Return values by name, each checked to be of its parameter's type.

    Raises:
        SettingsError: an unknown name, a value of another type, a secret.
    """
    for name, value in given.items():
        if name not in parameters:
            raise SettingsError(_unknown(name, parameters, notebook))
        _refuse_secret(name, value)
        _refuse_other_type(parameters[name], value)
    return dict(given)


def _refuse_other_type(parameter: Parameter, value: Value) -> None:
    wanted = type(parameter.default)
    if isinstance(value, list) and wanted is list:
        _items(parameter, value)
    elif (
        type(value) is not wanted
        and not (wanted is float and type(value) is int)
        and parameter.default is not None
    ):
        raise _unfit(parameter, _TYPE_NAMES.get(wanted, "of another type"))


_TYPE_NAMES: Final = {
    bool: "true or false",
    int: "a whole number",
    float: "a number such as 0.5",
    str: "a text",
    list: "a list",
    dict: "a table",
}


def _unknown(name: str, parameters: Mapping[str, Parameter], notebook: str) -> str:
    if not parameters:
        return f"{notebook} takes no parameters: no cell of it has the tag `parameters`."
    known = "\n".join(f"  {parameter.described}" for parameter in parameters.values())
    near = get_close_matches(name, parameters, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"{notebook} has no parameter {name!r}.{hint} It has:\n{known}"


def _refuse_secret(name: str, value: Value) -> None:
    if looks_secret(name, value):
        raise SettingsError(
            "The value of {!r} looks like a secret, and the executed notebook would keep it. Hand secrets "
            "over in the environment.",
            name,
        )


def _value(parameter: Parameter, texts: list[str]) -> Value:
    if isinstance(parameter.default, list):
        if len(texts) == 1 and texts[0].lstrip().startswith("["):
            return _items(parameter, _json(parameter, texts[0], list))
        return [_one(parameter, _item_type(parameter), text) for text in texts]
    if len(texts) > 1:
        raise SettingsError("{} was given {} times; it takes one value.", parameter.name, len(texts))
    return _one(parameter, type(parameter.default), texts[0])


def _one(parameter: Parameter, wanted: type, text: str) -> Value:
    if wanted is dict:
        found: dict[str, Any] = _json(parameter, text, dict)
        return found
    if wanted is bool and text.lower() in {"true", "false"}:
        return text.lower() == "true"
    if wanted is int and re.fullmatch(r"[+-]?[0-9]{1,1000}", text):
        return int(text)
    if wanted is float and "_" not in text:
        with suppress(ValueError):
            if math.isfinite(number := float(text)):
                return number
    if wanted in {bool, int, float}:
        raise _unfit(parameter, _TYPE_NAMES[wanted])
    return text


def _json(parameter: Parameter, text: str, wanted: type) -> Any:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, wanted):
        raise _unfit(parameter, "a JSON list" if wanted is list else "a JSON object")
    return found


def _items(parameter: Parameter, items: list[Any]) -> list[Any]:
    wanted = _item_type(parameter)
    if any(type(item) is not wanted for item in items):
        raise _unfit(parameter, f"a list of {wanted.__name__} values")
    return items


def _item_type(parameter: Parameter) -> type:
    """Return the type of the items of a list parameter; those of an empty default are texts."""
    assert isinstance(parameter.default, list)
    return type(parameter.default[0]) if parameter.default else str


def _unfit(parameter: Parameter, wanted: str) -> SettingsError:
    return SettingsError("{} must be {}. In the notebook: {}", parameter.name, wanted, parameter.described)
