"""Read environment variables as values of a type; each error names its variable and an example."""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from ipaddress import ip_address
from pathlib import Path
from typing import Final, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from toolkit.errors import SettingsError

Choice = TypeVar("Choice", bound=StrEnum)

_DATABASE_EXAMPLE: Final = "postgresql://user:password@host:5432/database"
_HOW_TO_ESCAPE: Final = (
    f"it must look like {_DATABASE_EXAMPLE}. In a password write @ as %40, : as %3A, / as %2F and % as %25."
)


@dataclass(frozen=True, slots=True)
class Environment:
    """Variables by name; an empty one counts as not set, and one that is not set is ``None`` or empty.

    Every method may raise ``SettingsError``.
    """

    variables: Mapping[str, str]

    def text(self, name: str) -> str | None:
        """Return the text of a variable."""
        return self.variables.get(name, "").strip() or None

    def secret(self, name: str) -> str | None:
        """Return the text of a variable, or the contents of the file that the variable with ``_FILE`` names."""
        file = self.text(f"{name}_FILE")
        if file is None:
            return self.text(name)
        try:
            return Path(file).read_text(encoding="utf-8").strip() or None
        except (OSError, UnicodeDecodeError):
            raise SettingsError(f"{name}_FILE names a file that cannot be read") from None

    def like(self, name: str, pattern: str, example: str) -> str | None:
        """Return a text that matches ``pattern`` from its start."""
        text = self.text(name)
        if text is not None and not re.match(pattern, text):
            raise SettingsError(f"{name} must look like {example}")
        return text

    def choice(self, name: str, kind: type[Choice]) -> Choice | None:
        """Return a member of an enumeration."""
        try:
            return kind(text) if (text := self.text(name)) else None
        except ValueError:
            raise SettingsError(f"{name} must be one of {', '.join(kind)}") from None

    def number(self, name: str, lowest: int, highest: int) -> int | None:
        """Return a whole number."""
        text = self.text(name)
        if text is None:
            return None
        if not (text.isascii() and text.isdigit() and len(text) < 20 and lowest <= int(text) <= highest):
            raise SettingsError(f"{name} must be a whole number from {lowest} to {highest}")
        return int(text)

    def path(self, name: str) -> Path | None:
        """Return an absolute path."""
        text = self.text(name)
        return None if text is None else Path(text).expanduser().absolute()

    def items(self, name: str) -> tuple[str, ...]:
        """Return texts with commas between them."""
        return tuple(each.strip() for each in (self.text(name) or "").split(",") if each.strip())

    def addresses(self, name: str) -> frozenset[str]:
        """Return IP addresses with commas between them."""
        try:
            return frozenset(str(ip_address(one)) for one in self.items(name))
        except ValueError:
            raise SettingsError(f"{name} must list addresses, such as 127.0.0.1,10.0.0.7") from None

    def moment(self, name: str) -> datetime | None:
        """Return a time with its offset."""
        text = self.text(name)
        if text is None:
            return None
        with suppress(ValueError):
            moment = datetime.fromisoformat(text)
            if moment.tzinfo is not None:
                return moment
        raise SettingsError(f"{name} must be a time with its offset, such as 2026-11-20T18:00:00Z")

    def timezone(self, name: str) -> ZoneInfo | None:
        """Return a time zone by its name."""
        try:
            return ZoneInfo(text) if (text := self.text(name)) else None
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise SettingsError(
                f"{name} {text!r} is not a known time zone; write one like America/Sao_Paulo"
            ) from None

    def endpoint(self, *names: str) -> str | None:
        """Return the address of a server, from the first of these variables that is set."""
        for name in names:
            url = self.like(name, r"https?://[^/\s]", "https://s3.example.com")
            if url is not None and "@" in url:
                raise SettingsError(
                    f"{name} must not hold a user or a password: they are not sent, and addresses are shown. Keys "
                    "belong into AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
                )
            if url is not None:
                return url
        return None

    def database_url(self, name: str) -> str | None:
        """Return the URL of a PostgreSQL database for SQLAlchemy."""
        text = self.text(name)
        if text is None:
            return None
        # Commands that need no database do not wait for SQLAlchemy to load.
        from sqlalchemy.engine import make_url
        from sqlalchemy.exc import ArgumentError

        scheme, separator, rest = text.partition("://")
        if not separator or scheme not in {"postgres", "postgresql", "postgresql+psycopg"}:
            raise SettingsError(f"{name} must look like {_DATABASE_EXAMPLE}")
        try:
            url = _with_several_hosts(f"postgresql+psycopg://{rest}")
            parts = make_url(url)
        except (ValueError, ArgumentError):  # both quote the text, which may hold a password
            raise SettingsError(f"{name} cannot be understood; {_HOW_TO_ESCAPE}") from None
        if "@" in f"{parts.host}{parts.database}":
            raise SettingsError(f"{name} has more than one @; {_HOW_TO_ESCAPE}")
        return url


def _with_several_hosts(url: str) -> str:
    """Return the URL with libpq's ``host1:5432,host2:5432`` written as SQLAlchemy takes it, once for each host."""
    several = re.fullmatch(
        r"(?P<start>[^/]+://(?:[^/?]*@)?)(?P<hosts>[^/?@]*,[^/?@]*)(?P<path>/[^?]*)?(\?(?P<query>.*))?", url
    )
    if several is None:
        return url
    hosts = "&".join(f"host={host}" for host in several["hosts"].split(","))
    return f"{several['start']}{several['path'] or '/'}?{hosts}" + (
        f"&{several['query']}" if several["query"] else ""
    )
