"""Read the settings of notices from the environment; secrets may stand in files that it names."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from toolkit.errors import SettingsError

_ADDRESS: Final = re.compile(r"[^@\s,;<>]+@[^@\s,;<>]+")


class Security(StrEnum):
    """The encryption of the connection to the mail server."""

    STARTTLS = "starttls"
    TLS = "tls"
    NONE = "none"


_PORTS: Final = {Security.STARTTLS: 587, Security.TLS: 465, Security.NONE: 25}


@dataclass(frozen=True, slots=True)
class EmailSettings:
    """The mail server, and who writes to whom."""

    host: str
    port: int
    security: Security
    sender: str
    recipients: tuple[str, ...]
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    ca_file: Path | None = None
    """Certificates to trust instead of the system's."""


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    """The address that notices are posted to, and the key that signs them."""

    url: str = field(repr=False)
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class NoticeSettings:
    """The channels of notices; without any, no notice is sent."""

    email: EmailSettings | None
    webhook: WebhookSettings | None
    language: str

    @property
    def channels(self) -> tuple[str, ...]:
        """The names of the channels."""
        return tuple(name for name in ("email", "webhook") if getattr(self, name) is not None)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> NoticeSettings:
        """Read the settings; an empty variable counts as not set.

        Raises:
            SettingsError: naming the variable and what is wrong with it.
        """
        language = environ.get("TOOLKIT_LANGUAGE", "").strip()
        return cls(_email(environ), _webhook(environ), language or "en")


def _email(environ: Mapping[str, str]) -> EmailSettings | None:
    host = environ.get("TOOLKIT_SMTP_HOST", "").strip()
    if not host:
        return None
    try:
        security = Security(environ.get("TOOLKIT_SMTP_SECURITY", "").strip() or Security.STARTTLS)
    except ValueError:
        raise SettingsError("TOOLKIT_SMTP_SECURITY must be starttls, tls or none") from None
    if security is Security.NONE and not _is_this_machine(host):
        raise SettingsError("TOOLKIT_SMTP_SECURITY=none is for a mail server on this machine only")
    port = environ.get("TOOLKIT_SMTP_PORT", "").strip() or str(_PORTS[security])
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise SettingsError("TOOLKIT_SMTP_PORT must be a whole number from 1 to 65535")
    recipients = tuple(filter(None, re.split(r"[,;\s]+", environ.get("TOOLKIT_NOTICE_TO", ""))))
    sender = environ.get("TOOLKIT_NOTICE_FROM", "").strip()
    for name, addresses in (("TOOLKIT_NOTICE_TO", recipients), ("TOOLKIT_NOTICE_FROM", (sender,))):
        if not addresses or not all(_ADDRESS.fullmatch(address) for address in addresses):
            raise SettingsError(f"{name} must name e-mail addresses, as TOOLKIT_SMTP_HOST is set")
    user, password = (
        environ.get("TOOLKIT_SMTP_USER", "").strip() or None,
        _secret(environ, "TOOLKIT_SMTP_PASSWORD"),
    )
    if (user is None) != (password is None):
        raise SettingsError("TOOLKIT_SMTP_USER and TOOLKIT_SMTP_PASSWORD (or its _FILE) must be set together")
    ca_file = environ.get("TOOLKIT_SMTP_CA_FILE", "").strip()
    return EmailSettings(
        host, int(port), security, sender, recipients, user, password, Path(ca_file) if ca_file else None
    )


def _webhook(environ: Mapping[str, str]) -> WebhookSettings | None:
    url = _secret(environ, "TOOLKIT_WEBHOOK_URL")
    if url is None:
        return None
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise SettingsError("TOOLKIT_WEBHOOK_URL must look like https://hooks.example.com/path")
    if parts.scheme == "http" and not _is_this_machine(parts.hostname):
        raise SettingsError("TOOLKIT_WEBHOOK_URL must begin with https:// unless it is on this machine")
    secret = _secret(environ, "TOOLKIT_WEBHOOK_SECRET")
    if secret is None:
        raise SettingsError("TOOLKIT_WEBHOOK_SECRET (or its _FILE) must be set: every notice is signed with it")
    return WebhookSettings(url, secret)


def _secret(environ: Mapping[str, str], name: str) -> str | None:
    """Return the value of a variable, or the contents of the file that the variable with ``_FILE`` names."""
    file = environ.get(f"{name}_FILE", "").strip()
    if not file:
        return environ.get(name, "").strip() or None
    try:
        return Path(file).read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        raise SettingsError(f"{name}_FILE names a file that cannot be read") from None


def _is_this_machine(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
