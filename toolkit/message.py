"""A sentence for people, kept as a template and its values until somebody's language is known."""

import re
from collections.abc import Iterable
from enum import StrEnum
from functools import reduce
from typing import Any, Self


class Message(str):
    """An English sentence that remembers its template and values, so that ``Language.tell`` can translate it.

    ``Message("{}: the file is empty.", "a.xlsx")`` is the text ``a.xlsx: the file is empty.``; the template is the
    key of the catalogues. Values may be messages themselves; those of a translation are ``{0}``, ``{1}``.
    """

    __slots__ = ("template", "values")

    template: str
    values: tuple[Any, ...]

    def __new__(cls, template: str, /, *values: Any) -> Self:
        """Format the template with its values."""
        made = super().__new__(cls, template.format(*values) if values else template)
        made.template, made.values = template, values
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return Message, (self.template, *map(sentence_of, self.values))


def listed(messages: Iterable[str]) -> Message:
    """Return several sentences as one."""
    several = [*messages]
    return Message("; ".join(["{}"] * len(several)), *several)


def either(names: Iterable[str]) -> str:
    """Return names with "or" between them."""
    return reduce(lambda one, other: Message("{} or {}", one, other), names)


def recognised(text: str, templates: Iterable[str]) -> Message:
    """Return a finished text, such as one read from a file, as the message of the first template that it fits."""
    for template in templates:
        fixed = re.split(r"\{:?,?\}", template)
        if found := re.fullmatch("(.*?)".join(map(re.escape, fixed)), text, re.DOTALL):
            numbers = "{:,}" in template
            values = [int(each.replace(",", "")) if numbers else each for each in found.groups()]
            return Message(template, *values)
    return Message(text)


def sentence_of(value: Any) -> Any:
    """Return an error as its sentence, which another process can read, and anything else as it is."""
    if not isinstance(value, Exception):
        return value
    if value.args and isinstance(value.args[0], Message):
        return value.args[0]
    return getattr(value, "strerror", None) or str(value)


class LabelledEnum(StrEnum):
    """An enumeration of codes; each member is written as its code and its ``text``."""

    text: str

    def __new__(cls, code: str, text: str = "") -> Self:
        """Make a member; the text is left out only where a member is looked up by its code."""
        member = str.__new__(cls, code)
        member._value_, member.text = code, text
        return member
