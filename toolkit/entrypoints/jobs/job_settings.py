"""Read the settings of jobs from the environment, and ``jobs.toml``."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Final, Self
from zoneinfo import ZoneInfo

from toolkit.domain.jobs.definitions import Job, read_jobs
from toolkit.environment import Environment
from toolkit.errors import SettingsError
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


def load_jobs(file: Path, zone: ZoneInfo) -> dict[str, Job]:
    """Return the jobs that the file defines, by name.

    Raises:
        SettingsError: the file is not there, is not valid TOML, or defines something wrong.
    """
    try:
        return read_jobs(tomllib.loads(file.read_text(encoding="utf-8")), zone)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise SettingsError(f"{file} cannot be read: {reason}. TOOLKIT_JOBS names the jobs file.") from None
    except SettingsError as error:
        raise SettingsError(f"{file}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{file} is not valid TOML: {error}") from None


def job_named(jobs: dict[str, Job], name: str) -> Job:
    """Return the job of this name.

    Raises:
        SettingsError: there is none; the text names what comes closest.
    """
    if name in jobs:
        return jobs[name]
    near = get_close_matches(name, jobs, n=1)
    hint = f"Did you mean {near[0]}?" if near else f"There are: {', '.join(jobs)}"
    raise SettingsError(f"There is no job {name!r}. {hint}")
