"""Choose the account of a server's process: the caller's; for root, which PostgreSQL refuses, a system account."""

import os
import pwd
import shutil
from contextlib import suppress
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

    def give(self, path: Path) -> None:
        """Make the server's account the owner of ``path``."""
        if self.ids is not None:
            os.chown(path, *self.ids, follow_symlinks=False)


def server_account(folder: Path, *, root_may: bool = False) -> Account:
    """Return the account for the server that keeps its data in ``folder``: the folder's owner, once it is there.

    Raises:
        EmbeddedServiceError: the folder is somebody else's, or no account can be had.
    """
    caller = _entry(os.geteuid())
    owner = _entry(folder.stat().st_uid) if folder.exists() else caller
    if owner.pw_uid == 0 and caller.pw_uid == 0 and not root_may:
        owner = _system_user()
    if owner.pw_uid == caller.pw_uid:
        return Account(caller.pw_name, caller.pw_name, None)
    if caller.pw_uid == 0:
        return Account(owner.pw_name, caller.pw_name, (owner.pw_uid, owner.pw_gid))
    raise EmbeddedServiceError(
        f"The embedded services in {folder.parent} belong to {owner.pw_name}. "
        "Set TOOLKIT_HOME to a folder of your own."
    )


def check_reach(folder: Path, account: Account) -> None:
    """Make sure that the server can come to its data, which is a matter of the folders around them.

    Raises:
        EmbeddedServiceError: one of them is closed to it. None is opened here: it may be root's home.
    """
    if run(["/bin/sh", "-c", 'cd "$1"', "sh", str(folder)], owner=account.ids).returncode != 0:
        raise EmbeddedServiceError(
            f"PostgreSQL does not run as root, and {account.name}, who runs it instead, cannot reach {folder}. "
            "Set TOOLKIT_HOME to a folder that everybody may pass through, such as /var/lib/evidence-toolkit."
        )


def _system_user() -> pwd.struct_passwd:
    if _named(SYSTEM_USER) is None:
        _add(SYSTEM_USER)
    found = _named(SYSTEM_USER) or _named(_FALLBACK)
    if found is None:
        raise EmbeddedServiceError(
            f"PostgreSQL does not run as root, and there is no user {SYSTEM_USER} to run it. "
            f"Add one: useradd --system {SYSTEM_USER}"
        )
    return found


def _add(name: str) -> None:
    command = shutil.which("useradd") or shutil.which("useradd", path="/usr/sbin:/sbin")
    if command is not None:
        # It fails where somebody else has added it just now; the caller looks again.
        shell = shutil.which("nologin", path="/usr/sbin:/sbin") or "/bin/false"
        options = ("--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent", "--shell", shell)
        run([command, *options, name], owner=None)


def _named(name: str) -> pwd.struct_passwd | None:
    with suppress(KeyError):
        return pwd.getpwnam(name)
    return None


def _entry(uid: int) -> pwd.struct_passwd:
    try:
        return pwd.getpwuid(uid)
    except KeyError:
        raise EmbeddedServiceError(
            f"User {uid} has no entry in the system's user database, which PostgreSQL needs. "
            "Add one, or set DATABASE_URL to a shared database."
        ) from None
