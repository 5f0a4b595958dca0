"""Read the settings of notices from the environment; secrets may stand in files that it names."""

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final, Self
from urllib.parse import urlsplit

from toolkit.environment import Environment
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
    def from_environment(cls, environ: Mapping[str, str]) -> Self:
        """Read the settings; an empty variable counts as not set.

        Raises:
            SettingsError: naming the variable and what is wrong with it.
        """
        given = Environment(environ)
        return cls(_email(given), _webhook(given), given.text("TOOLKIT_LANGUAGE") or "en")


def _email(given: Environment) -> EmailSettings | None:
    host = given.text("TOOLKIT_SMTP_HOST")
    if host is None:
        return None
    security = given.choice("TOOLKIT_SMTP_SECURITY", Security) or Security.STARTTLS
    if security is Security.NONE and not _is_this_machine(host):
        raise SettingsError("TOOLKIT_SMTP_SECURITY=none is for a mail server on this machine only")
    port = given.number("TOOLKIT_SMTP_PORT", 1, 65535) or _PORTS[security]
    recipients = tuple(filter(None, re.split(r"[,;\s]+", given.text("TOOLKIT_NOTICE_TO") or "")))
    sender = given.text("TOOLKIT_NOTICE_FROM") or ""
    for name, addresses in (("TOOLKIT_NOTICE_TO", recipients), ("TOOLKIT_NOTICE_FROM", (sender,))):
        if not addresses or not all(_ADDRESS.fullmatch(address) for address in addresses):
            raise SettingsError(f"{name} must name e-mail addresses, as TOOLKIT_SMTP_HOST is set")
    user, password = given.text("TOOLKIT_SMTP_USER"), given.secret("TOOLKIT_SMTP_PASSWORD")
    if (user is None) != (password is None):
        raise SettingsError("TOOLKIT_SMTP_USER and TOOLKIT_SMTP_PASSWORD (or its _FILE) must be set together")
    ca_file = given.path("TOOLKIT_SMTP_CA_FILE")
    return EmailSettings(host, port, security, sender, recipients, user, password, ca_file)


def _webhook(given: Environment) -> WebhookSettings | None:
    url = given.secret("TOOLKIT_WEBHOOK_URL")
    if url is None:
        return None
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise SettingsError("TOOLKIT_WEBHOOK_URL must look like https://hooks.example.com/path")
    if parts.scheme == "http" and not _is_this_machine(parts.hostname):
        raise SettingsError("TOOLKIT_WEBHOOK_URL must begin with https:// unless it is on this machine")
    secret = given.secret("TOOLKIT_WEBHOOK_SECRET")
    if secret is None:
        raise SettingsError("TOOLKIT_WEBHOOK_SECRET (or its _FILE) must be set: every notice is signed with it")
    return WebhookSettings(url, secret)


def _is_this_machine(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
