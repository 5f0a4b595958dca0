"""Protect the connection to a database on another machine, where the address does not say how."""

import os
import re
from ipaddress import ip_address
from pathlib import Path
from typing import Final

import sqlalchemy as sa

_OWN_CERTIFICATES: Final = "~/.postgresql/root.crt"
"""The file in which libpq looks for the certificates of authorities by itself."""


def protected(url: sa.URL) -> sa.URL:
    """Return the address, set to protect a login on another machine: TLS, a verified server, no readable password.

    Weaker ways are taken where the address names them itself (``sslmode``, ``require_auth``). The certificates of
    authorities are those of ``sslrootcert``, else the user's own for PostgreSQL, else the system's.
    """
    if _is_local(url):
        return url
    added: dict[str, str] = {}
    if "sslmode" not in url.query:
        added["sslmode"] = "verify-full"
        if "sslrootcert" not in url.query and not _has_certificates():
            added["sslrootcert"] = "system"
    if "require_auth" not in url.query:
        # Without a password a certificate of the client may do, for which the server asks nothing more.
        added["require_auth"] = "scram-sha-256" if url.password else "!password,!md5"
    return url.update_query_dict(added)


def _is_local(url: sa.URL) -> bool:
    named = [url.host or "", *_several(url, "host"), *_several(url, "hostaddr")]
    hosts = [host for host in named if host] or [os.environ.get("PGHOST", ""), os.environ.get("PGHOSTADDR", "")]
    return all(_is_this_machine(host) for host in hosts) and "service" not in url.query


def _several(url: sa.URL, name: str) -> list[str]:
    value = url.query.get(name, ())
    return [host for text in ([value] if isinstance(value, str) else value) for host in text.split(",")]


def _is_this_machine(host: str) -> bool:
    if not host or host.startswith(("/", "@")) or host.lower() == "localhost":
        return True
    # SQLAlchemy keeps the port of each of several hosts with it.
    bracketed = re.match(r"\[([^]]*)\]", host)
    address = bracketed[1] if bracketed else host.rpartition(":")[0] if host.count(":") == 1 else host
    try:
        return address.lower() == "localhost" or ip_address(address).is_loopback
    except ValueError:
        return False


def _has_certificates() -> bool:
    return "PGSSLROOTCERT" in os.environ or Path(os.path.expanduser(_OWN_CERTIFICATES)).exists()  # noqa: PTH111  # it never fails
