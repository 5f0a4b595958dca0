"""One line of a draft: where a column comes from, why, and whether somebody has to look at it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from toolkit.storage.service_map.model import to_fill_in

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True)
class Choice:
    """The value of a column in the file; ``why`` stands beside it as a comment."""

    source: str | Mapping[str, Any]
    why: str = ""
    review: bool = False
    """True if it was taken by its name or by habit rather than read from the database."""

    @property
    def open(self) -> bool:
        """Tell whether somebody has to fill something in."""
        return bool(to_fill_in(self.source))

    @property
    def line(self) -> str:
        """The value and its comment."""
        said = ("REVIEW: " if self.review else "") + self.why
        return toml(self.source) + (f"  # {' '.join(said.split())}" if said else "")


ABSENT: Final = {"absent": True}


def toml(value: Any) -> str:
    """Return a value as TOML writes it, on one line."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        inside = ", ".join(f"{_key(name)} = {toml(item)}" for name, item in value.items())
        return f"{{ {inside} }}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(toml, value))}]"
    text = str(value)
    if ('"' in text or "\\" in text) and "'" not in text and text.isprintable():
        return f"'{text}'"
    if '"' in text and "'''" not in text and not text.endswith("'") and text.isprintable():
        return f"'''{text}'''"
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in escaped) + '"'


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else toml(name)
