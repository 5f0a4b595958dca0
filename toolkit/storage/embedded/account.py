"""Whose process the server is: the caller's own, and for root, which PostgreSQL refuses, a system account."""

from __future__ import annotations

import os
import pwd
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from toolkit.errors import EmbeddedServiceError
from toolkit.storage.embedded.processes import run

SYSTEM_USER: Final = "evidence-toolkit"
_FALLBACK: Final = "nobody"


@dataclass(frozen=True, slots=True)
class Account:
    """The account that a server runs under, and the one that calls it."""

    name: str
    caller: str
    ids: tuple[int, int] | None
    """uid and gid to switch to; ``None`` where server and caller are the same."""


def account(folder: Path) -> Account:
    """The account for the server that keeps its data in ``folder``: whose it is already, if it is there.

    Raises:
        EmbeddedServiceError: the folder is somebody else's, or no account can be had.
    """
    caller = _entry(os.geteuid())
    if folder.exists():
        return _owner_of(folder, caller)
    if caller.pw_uid != 0:
        return Account(caller.pw_name, caller.pw_name, None)
    return _switched(_system_user(), caller)


def _owner_of(folder: Path, caller: pwd.struct_passwd) -> Account:
    owner = _entry(folder.stat().st_uid)
    if owner.pw_uid == 0 and caller.pw_uid == 0:
        return _switched(_system_user(), caller)
    if owner.pw_uid == caller.pw_uid:
        return Account(caller.pw_name, caller.pw_name, None)
    if caller.pw_uid == 0:
        return _switched(owner, caller)
    raise EmbeddedServiceError(
        f"The embedded services in {folder.parent} belong to {owner.pw_name}. "
        "Set TOOLKIT_HOME to a folder of your own."
    )


def _switched(server: pwd.struct_passwd, caller: pwd.struct_passwd) -> Account:
    return Account(server.pw_name, caller.pw_name, (server.pw_uid, server.pw_gid))


def _system_user() -> pwd.struct_passwd:
    for name in (SYSTEM_USER, _FALLBACK):
        if name == SYSTEM_USER and not _exists(name):
            _add(name)
        if _exists(name):
            return pwd.getpwnam(name)
    raise EmbeddedServiceError(
        f"PostgreSQL does not run as root, and there is no user {SYSTEM_USER} to run it. "
        f"Add one: useradd --system {SYSTEM_USER}"
    )


def _add(name: str) -> None:
    command = shutil.which("useradd") or shutil.which("useradd", path="/usr/sbin:/sbin")
    if command is not None:
        # It fails where somebody else has added it just now; the caller looks again.
        options = ("--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent")
        run(
            [command, *options, "--shell", shutil.which("nologin", path="/usr/sbin:/sbin") or "/bin/false", name],
            owner=None,
        )


def _exists(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def _entry(uid: int) -> pwd.struct_passwd:
    try:
        return pwd.getpwuid(uid)
    except KeyError:
        raise EmbeddedServiceError(
            f"User {uid} has no entry in the system's user database, which PostgreSQL needs. "
            "Add one, or set DATABASE_URL to a shared database."
        ) from None
