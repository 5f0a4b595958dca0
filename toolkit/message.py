"""A sentence for people, kept as a template and its values until somebody's language is known."""

from __future__ import annotations

from typing import Any


class Message(str):
    """An English sentence that remembers its template and values, so that ``Language.tell`` can translate it.

    ``Message("{}: the file is empty.", "a.xlsx")`` is the text ``a.xlsx: the file is empty.``; the template is the
    key of the catalogues. Values may be messages themselves; those of a translation are ``{0}``, ``{1}``.
    """

    __slots__ = ("template", "values")

    template: str
    values: tuple[Any, ...]

    def __new__(cls, template: str, /, *values: Any) -> Message:
        """Format the template with its values."""
        made = super().__new__(cls, template.format(*values) if values else template)
        made.template, made.values = template, values
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return Message, (self.template, *map(_plain, self.values))


def _plain(value: Any) -> Any:
    """Return a value that another process can read: a message as it is, an error as its sentence."""
    return value.args[0] if isinstance(value, Exception) and value.args else value
