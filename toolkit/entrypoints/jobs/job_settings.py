"""Read the settings of jobs from the environment."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from toolkit.environment import Environment
from toolkit.settings import Settings

_HERE: Final = Path(__file__).parent
_FILE: Final = "jobs.toml"


@dataclass(frozen=True, slots=True)
class JobSettings:
    """Paths; every one has a default."""

    file: Path
    """The jobs file (``TOOLKIT_JOBS``); else ``jobs.toml`` of the current folder; else the one of the toolkit."""
    out: Path
    """The folder for what runs write (``TOOLKIT_JOBS_OUT``); ``jobs`` in ``TOOLKIT_HOME`` by default."""
    metrics: Path | None
    """The textfile for the node exporter (``TOOLKIT_METRICS_FILE``); none by default."""

    @classmethod
    def from_environment(cls, environ: Mapping[str, str], settings: Settings) -> Self:
        """Read the settings; an empty variable counts as not set."""
        given, here = Environment(environ), Path.cwd() / _FILE
        return cls(
            file=given.path("TOOLKIT_JOBS") or (here if here.is_file() else _HERE / _FILE),
            out=given.path("TOOLKIT_JOBS_OUT") or settings.home / "jobs",
            metrics=given.path("TOOLKIT_METRICS_FILE"),
        )
