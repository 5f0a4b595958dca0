"""Limit the addresses that files are sent to, since a credentials file from elsewhere may name any."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Self
from urllib.parse import urlsplit

from toolkit.settings import Settings

_LOOPBACK: Final = frozenset(("localhost", "127.0.0.1", "::1"))

_AMAZON: Final = r"s3(?:[.-](?:accelerate|dualstack|fips|[a-z]{2}(?:-[a-z]+)+-\d))*\.amazonaws\.com(?:\.cn)?"
"""The hosts of Amazon S3. Whatever stands before may be anybody's bucket."""

_USUAL_PORT: Final = re.compile(r"(?<=^http)(://[^/]*):80(?=/|$)|(?<=^https)(://[^/]*):443(?=/|$)")


@dataclass(frozen=True, slots=True)
class Destinations:
    """Whole hosts, and the addresses of the one bucket that is set."""

    hosts: frozenset[str]
    bucket: re.Pattern[str] | None = None

    @classmethod
    def of(cls, settings: Settings, allowed: Iterable[str] = ()) -> Self:
        """Return the bucket that is set (this machine where none is), and the hosts ``allowed``."""
        also = frozenset(host.strip().strip("[]").lower() for host in allowed)
        if settings.evidence_bucket is None:
            return cls(_LOOPBACK | also)
        scheme, server, folder = "https", _AMAZON, ""
        if settings.aws.s3_endpoint is not None:
            endpoint = urlsplit(_told(settings.aws.s3_endpoint))
            scheme, server, folder = endpoint.scheme, re.escape(endpoint.netloc), re.escape(endpoint.path)
        name = re.escape(settings.evidence_bucket)
        return cls(also, re.compile(f"{scheme}://(?:{server}{folder}/{name}|{name.lower()}\\.{server}{folder})"))

    def allow(self, url: str) -> bool:
        """Tell whether files may go there."""
        host = (urlsplit(url).hostname or "").lower()
        return host in self.hosts or (self.bucket is not None and bool(self.bucket.fullmatch(_told(url))))


def _told(url: str) -> str:
    """Return the address without what may be left out or written in two ways."""
    parts = urlsplit(url)
    netloc = parts.netloc.rpartition("@")[2].lower()
    return _USUAL_PORT.sub(r"\1\2", f"{parts.scheme}://{netloc}{parts.path.rstrip('/')}")
