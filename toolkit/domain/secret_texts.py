"""Texts that look like a secret: names of parameters, and values that no file or log may keep."""

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote, urlsplit

_SECRET_NAME: Final = re.compile(
    r"(?:^|[_-])(?:passwords?|passwd|senhas?|secrets?|tokens?|jwt|api[_-]?keys?|access[_-]?keys?|private[_-]?keys?)"
    r"(?:[_-]|$)",
    re.IGNORECASE,
)
_SECRET_VALUE: Final = re.compile(
    r"://[^/@\s]+:[^/@\s]+@"  # an address with user and password
    r"|\beyJ[\w-]+\.[\w-]+\.[\w-]*"  # a bearer token
    r"|-----BEGIN [A-Z ]*PRIVATE KEY"
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"
)


def looks_secret(name: str, value: Any) -> bool:
    """Tell whether a parameter's name says that it is a secret, or a text anywhere in its value does."""
    if isinstance(value, dict):
        return any(looks_secret(str(key), item) for key, item in value.items()) or looks_secret(name, "")
    if isinstance(value, (list, tuple)):
        return any(looks_secret(name, item) for item in value)
    return bool(_SECRET_NAME.search(name) or (isinstance(value, str) and _SECRET_VALUE.search(value)))


_SHORTEST: Final = 6
"""Characters of a secret; a shorter one stands in many texts by chance."""


def secret_values(environ: Mapping[str, str]) -> list[str]:
    """Return the secrets of an environment, and the passwords of the addresses in it; the longest first."""
    found = set()
    for name, value in environ.items():
        if looks_secret(name, value) and not name.endswith(("_FILE", "_PUBLIC_KEY")):
            try:
                password = urlsplit(value).password or ""
            except ValueError:  # no address
                password = ""
            found |= {value, password, unquote(password)}
    return sorted((secret for secret in found if len(secret) >= _SHORTEST), key=len, reverse=True)
