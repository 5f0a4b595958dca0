"""Read ``jobs.toml``."""

import tomllib
from difflib import get_close_matches
from pathlib import Path
from zoneinfo import ZoneInfo

from toolkit.domain.jobs.definitions import Job, read_jobs
from toolkit.errors import SettingsError


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
