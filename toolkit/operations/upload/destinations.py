"""Limit the hosts that files are sent to, since a credentials file from elsewhere may name any."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from toolkit.settings import Settings

_LOOPBACK: Final = frozenset(("localhost", "127.0.0.1", "::1"))
_AMAZON: Final = (".amazonaws.com", ".amazonaws.com.cn")


@dataclass(frozen=True, slots=True)
class Destinations:
    """Hosts by their whole name, or by the end of it."""

    hosts: frozenset[str]
    ends: tuple[str, ...] = ()

    @classmethod
    def of(cls, settings: Settings, allowed: Iterable[str] = ()) -> Destinations:
        """Return the hosts of the bucket that is set (this machine where none is), and those ``allowed``."""
        also = frozenset(host.strip().strip("[]").lower() for host in allowed)
        if settings.evidence_bucket is None:
            return cls(_LOOPBACK | also)
        if settings.aws.s3_endpoint is None:
            return cls(also, _AMAZON)
        endpoint = urlsplit(settings.aws.s3_endpoint).hostname or ""
        return cls(also | {endpoint, f"{settings.evidence_bucket.lower()}.{endpoint}"})

    def allow(self, host: str) -> bool:
        """Tell whether files may go there."""
        return host.lower() in self.hosts or host.lower().endswith(self.ends)
