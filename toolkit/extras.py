"""Check that the optional parts of the toolkit are installed, and name the packages that each needs.

``pip install evidence-toolkit`` brings what loading, credentials, uploads and the partners' client need;
``pip install 'evidence-toolkit[audit]'`` brings the packages of the extra ``audit`` too.
"""

import re
from collections.abc import Mapping
from functools import cache
from importlib.metadata import requires
from importlib.util import find_spec
from typing import Final, Literal

from toolkit.errors import NotInstalled
from toolkit.message import Message

Extra = Literal["audit", "embedded", "lab", "notebooks", "pdf", "serve", "spark", "speech"]

_MODULES: Final = {
    "ibis-framework": "ibis",
    "pyjwt": "jwt",
    "pyspark-client": "pyspark",
    "throttled-py": "throttled",
}
"""The modules of packages that are called otherwise."""


@cache
def modules_of(extra: Extra) -> Mapping[str, str]:
    """Return the packages that ``pyproject.toml`` names for an extra, each with its module."""
    declared = (each for each in requires("evidence-toolkit") or () if each.endswith(f'extra == "{extra}"'))
    packages = (re.split(r"[^\w-]", each, maxsplit=1)[0].lower() for each in declared)
    return {package: _MODULES.get(package, package.replace("-", "_")) for package in packages}


def require(extra: Extra, purpose: str) -> None:
    """Make sure that an extra is installed before its modules are imported.

    Args:
        extra: its name.
        purpose: what needs it, as the subject of a sentence in the plural.

    Raises:
        NotInstalled: a package of it is missing; the text says what to install.
    """
    missing = [package for package, module in modules_of(extra).items() if find_spec(module) is None]
    if missing:
        raise NotInstalled(
            "{} need {}, which this installation lacks: pip install 'evidence-toolkit[{}]'",
            Message(purpose),
            ", ".join(missing),
            extra,
        )
