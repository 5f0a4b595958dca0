"""The parameters of a notebook, read strictly: known names only, and each value of its default's type.

papermill alone would take an unknown name with a warning, turn the text ``00123456789`` into a number, and
keep every value in the executed notebook, secrets too.
"""

import ast
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import nbformat
from pydantic import ConfigDict, TypeAdapter, ValidationError

from toolkit.contract.people import looks_secret
from toolkit.errors import NotebookFailed, SettingsError
from toolkit.kit.spoken import _
from toolkit.message import Message

Value = str | bool | int | float | list[Any] | dict[str, Any] | None

_TYPE_NAMES: Final = {
    bool: Message("{} or {}", "true", "false"),
    int: Message("a whole number"),
    float: Message("a number such as 0.5"),
    str: Message("a text"),
    dict: Message("a table"),
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One assignment of the cell tagged ``parameters``: its name, default, and the comment beside it."""

    name: str
    default: Value
    comment: str

    @property
    def described(self) -> str:
        """One line for people: ``name = default   comment``."""
        return f"{self.name} = {self.default!r}" + (f"   {_(self.comment)}" if self.comment else "")

    def parsed(self, texts: list[str]) -> Any:
        """Return texts as a value of the default's type: a list is given item by item, or as JSON.

        Raises:
            SettingsError: one does not fit, or several are given for one value.
        """
        if isinstance(self.default, list):
            item: Any = type(self.default[0]) if self.default else str
            called = Message("a list of {} values", item.__name__)
            if len(texts) == 1 and texts[0].lstrip().startswith("["):
                return self._from_json(list[item], texts[0], called)
            return [self._from_json(item, text, called) for text in texts]
        if len(texts) > 1:
            raise SettingsError("{} was given {} times; it takes one value.", self.name, len(texts))
        kind = type(self.default)
        return self._from_json(kind, texts[0], _TYPE_NAMES.get(kind, kind.__name__))

    def _from_json(self, wanted: Any, text: str, called: str) -> Any:
        if wanted is str or self.default is None:
            return text
        fitting = TypeAdapter(wanted, config=ConfigDict(allow_inf_nan=False))
        try:
            return fitting.validate_json(text.lower() if wanted is bool else text, strict=True)
        except ValidationError:
            raise SettingsError("{} must be {}. In the notebook: {}", self.name, called, self.described) from None


def read_parameters(notebook: nbformat.NotebookNode) -> dict[str, Parameter]:
    """Return the parameters of a notebook, by name, in the order of its cell; none where no cell has the tag.

    Raises:
        NotebookFailed: the cell holds something else than names with literal values.
    """
    tagged = [cell.source for cell in notebook.cells if "parameters" in cell.get("metadata", {}).get("tags", [])]
    source = tagged[0] if tagged else ""
    try:
        statements = ast.parse(source).body
    except SyntaxError:
        raise NotebookFailed("The parameters cell of the notebook is not valid Python.") from None
    found = {}
    for statement in statements:
        match statement:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=ast.expr() as value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                with suppress(ValueError):
                    last = source.splitlines()[(value.end_lineno or 1) - 1].encode()
                    comment = last[value.end_col_offset :].decode().lstrip(" #")
                    found[name] = Parameter(name, ast.literal_eval(value), comment)
                    continue
        raise NotebookFailed(
            "Line {} of the parameters cell is no plain `name = value`: a value computed there would "
            "not follow the value that a run sets.",
            statement.lineno,
        )
    return found


def chosen_values(
    parameters: Mapping[str, Parameter], given: Iterable[tuple[str, str]], notebook: str
) -> dict[str, Value]:
    """Return the texts of ``-p NAME VALUE`` as values, a list item by item.

    Raises:
        SettingsError: an unknown name, a value of another type, one given twice, a secret.
    """
    texts: dict[str, list[str]] = {}
    for name, value in given:
        if name not in parameters:
            raise SettingsError(_unknown(name, parameters, notebook))
        if looks_secret(name, value):
            raise SettingsError(
                "The value of {!r} looks like a secret, and the executed notebook would keep it. Hand secrets "
                "over in the environment.",
                name,
            )
        texts.setdefault(name, []).append(value)
    return {name: parameters[name].parsed(several) for name, several in texts.items()}


def _unknown(name: str, parameters: Mapping[str, Parameter], notebook: str) -> Message:
    if not parameters:
        return Message("{} takes no parameters: no cell of it has the tag `parameters`.", notebook)
    known = "\n".join(f"  {parameter.described}" for parameter in parameters.values())
    return Message("{} has no parameter {!r}. It has:\n{}", notebook, name, known)
