"""Create PostgreSQL's data folder as a whole, for its owner only, and check its version."""

import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from toolkit.errors import EmbeddedServiceError
from toolkit.storage.embedded import processes
from toolkit.storage.embedded.account import Account
from toolkit.storage.embedded.programs import postgres_version

DATABASE: Final = "toolkit"
USER: Final = "toolkit"

_INITDB: Final = (
    f"--username={USER}",
    "--encoding=UTF8",
    "--locale=C",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",  # the same order of texts on every machine
    "--auth=peer",
    "--no-instructions",
)


def initialise(data: Path, programs: Path, owner: Account) -> None:
    """Create the folder under another name, and rename it when it is whole."""
    for remains in data.parent.glob(".new-*"):
        shutil.rmtree(remains)
    draft = Path(tempfile.mkdtemp(prefix=".new-", dir=data.parent))
    try:
        owner.give(draft)
        _run([str(programs / "initdb"), "-D", str(draft), *_INITDB], owner)
        _let_in(draft, owner)
        single_user = [str(programs / "postgres"), "--single", "-D", str(draft), "postgres"]
        _run(single_user, owner, f"CREATE DATABASE {DATABASE}\n")
        draft.rename(data)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def check_version(data: Path) -> None:
    """Make sure that the programs that we bring can read the data.

    Raises:
        EmbeddedServiceError: they were written by another major version.
    """
    found = (data / "PG_VERSION").read_text("ascii").strip()
    brought = (postgres_version() or "").partition(".")[0]
    if found != brought:
        raise EmbeddedServiceError(
            f"The data in {data} were written by PostgreSQL {found}, and this toolkit brings {brought}. "
            f"Use a toolkit that brings {found}, or begin anew after moving {data} away."
        )


def _let_in(data: Path, owner: Account) -> None:
    """Let only the accounts that share the server connect; the kernel identifies them, so there is no password."""
    (data / "pg_hba.conf").write_text("local all all peer map=home\n", "utf-8")
    names = sorted({owner.name, owner.caller, "root"})
    (data / "pg_ident.conf").write_text("".join(f'home "{name}" {USER}\n' for name in names), "utf-8")


def _run(command: Sequence[str], owner: Account, text: str = "") -> None:
    result = processes.run(command, owner=owner.ids, text=text)
    # The single-user server goes on after a failed statement, and ends with 0.
    complaints = [line for line in result.stderr.splitlines() if re.search("error:|ERROR:|FATAL:|PANIC:", line)]
    if result.returncode != 0 or complaints:
        program = Path(command[0]).name
        reason = complaints[-1].strip() if complaints else f"{program} ended with {result.returncode}"
        raise EmbeddedServiceError(
            f"PostgreSQL cannot make its data folder: {reason}. "
            "If the disk is full free some space, or set TOOLKIT_HOME to a folder elsewhere."
        )
