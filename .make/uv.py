"""Runs the environment's uv with the arguments given, on the package index that pip is configured for.

uv does not read pip's configuration. ``pip config list`` tells what its files and the environment say, in
one form; each setting is handed to uv under its own name, unless the environment sets that one already.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

UV_NAMES = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "no-index": "UV_NO_INDEX",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "client-cert": "SSL_CLIENT_CERT",
    "proxy": "ALL_PROXY",
    "default-timeout": "UV_HTTP_TIMEOUT",
    "timeout": "UV_HTTP_TIMEOUT",
}
"""Each setting of pip, and uv's variable for it."""

SECTIONS = ("global", "install", ":env:")
"""Where pip looks for a setting; the later one wins."""


def uv_settings(listed: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that make uv install from where pip does, given what ``pip config list`` printed."""
    found: dict[str, str] = {}
    for section in SECTIONS:
        for line in listed.splitlines():
            name, _, value = line.partition("=")
            if name.startswith(f"{section}."):
                found[name.removeprefix(f"{section}.")] = str(ast.literal_eval(value))
    # pip takes a package from any of its indexes; the lock's hashes say which file it may be.
    settings = {"UV_INDEX_STRATEGY": "unsafe-best-match"}
    settings |= {UV_NAMES[name]: value.strip() for name, value in found.items() if name in UV_NAMES}
    if "UV_FIND_LINKS" in settings:
        settings["UV_FIND_LINKS"] = ",".join(settings["UV_FIND_LINKS"].split())
    return {name: value for name, value in settings.items() if value and name not in environ}


def cache_settings(environ: Mapping[str, str]) -> dict[str, str]:
    """The variable that makes uv go without a cache, where the account has no home that it could make one in."""
    if any(environ.get(name) for name in ("UV_CACHE_DIR", "UV_NO_CACHE", "XDG_CACHE_HOME")):
        return {}
    folder = Path(os.path.expanduser("~/.cache/uv"))  # noqa: PTH111  # never fails, unlike Path.expanduser
    there = next(each for each in (folder.absolute(), *folder.absolute().parents) if each.exists())
    return {} if folder.is_absolute() and os.access(there, os.W_OK) else {"UV_NO_CACHE": "1"}


if __name__ == "__main__":
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], stdout=subprocess.PIPE, text=True, check=True
    ).stdout
    uv = Path(sys.executable).with_name("uv")
    environ = {**os.environ, **cache_settings(os.environ), **uv_settings(listed, os.environ)}
    os.execve(uv, [str(uv), *sys.argv[1:]], environ)  # noqa: S606
