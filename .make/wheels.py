"""Replaces each wheel for every platform by the one for this platform, where any index has it.

uv takes a version from the first index that has it, so a wheel without the libraries that it needs wins over the
wheel for this platform in another index. pip compares the wheels of all indexes.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from importlib.metadata import Distribution, distributions
from pathlib import Path

WHEEL_AND_SOURCE = 2
"""A package with no more files than these in the lock has one wheel, for every platform."""

MACHINE_CODE = (b"\x7fELF", b"MZ", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")
"""How programs and libraries begin on Linux, Windows and macOS."""


def requirements(lock: str) -> dict[tuple[str, str], str]:
    """The requirement with its hashes of each name and version in the lock."""
    blocks = re.finditer(r"^([a-z0-9-]+)==([^\s;]+)[^\n]*(?:\n {4}--hash[^\n]*)*", lock, re.MULTILINE)
    return {(block[1], block[2]): block[0] for block in blocks}


def has_machine_code(package: Distribution) -> bool:
    """Tell whether a file of the package is a program or a library."""
    for file in package.files or ():
        path = Path(str(file.locate()))
        if file.suffix not in {".py", ".pyi", ".pyc"} and path.is_file():
            with path.open("rb") as opened:
                if opened.read(4).startswith(MACHINE_CODE):
                    return True
    return False


def for_every_platform(lock: str) -> list[str]:
    """The requirements that were installed from a wheel for every platform and have other wheels in the lock."""
    known, found = requirements(lock), []
    for package in distributions():
        name = re.sub(r"[-_.]+", "-", package.metadata["Name"]).lower()
        requirement = known.get((name, package.version), "")
        pure = "Root-Is-Purelib: true" in (package.read_text("WHEEL") or "")
        if pure and requirement.count("--hash") > WHEEL_AND_SOURCE and not has_machine_code(package):
            found.append(requirement)
    return found


def main(lock: Path) -> None:
    """Install them again by pip."""
    found = for_every_platform(lock.read_text(encoding="utf-8"))
    if not found:
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "requirements.txt"
        file.write_text("\n".join(found), encoding="utf-8")
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*pip, "--force-reinstall", "--require-hashes", "--requirement", file], check=True)  # noqa: S603


if __name__ == "__main__":
    main(Path(sys.argv[1]))
