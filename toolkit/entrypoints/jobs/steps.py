"""Check a step before anything starts, and run it: a notebook in its kernel, or a command in this process."""

from collections.abc import Mapping
from contextlib import chdir
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Protocol

from toolkit.domain.jobs.definitions import Job, Step
from toolkit.domain.jobs.relative_dates import filled, named_values
from toolkit.entrypoints.jobs.job_log import JobLog
from toolkit.entrypoints.packaged_notebooks import find_notebook
from toolkit.errors import NotebookFailed, SettingsError

_NOT_FOR_KERNELS: Final = ("TOOLKIT_SMTP_", "TOOLKIT_WEBHOOK_", "TOOLKIT_JWT_SECRET")
"""Variables that no kernel gets."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds that a step may take, and each of its cells."""

    step: float
    cell: float | None


class Commands(Protocol):
    """The command line, as steps of a job run it."""

    def arguments(self, words: tuple[str, ...], parameters: Mapping[str, Any]) -> list[str]:
        """Return the arguments of a command with these parameters; raises SettingsError where it refuses them."""

    def run(self, arguments: list[str], environ: Mapping[str, str], log: JobLog) -> Mapping[str, Any]:
        """Run a command, and return the JSON document that it prints, if any."""


@dataclass(frozen=True, slots=True)
class PreparedStep:
    """A step of a run whose parameters are known to fit; ``{out}`` is filled in when it runs."""

    step: Step
    parameters: Mapping[str, Any]
    base: Path
    """The folder that relative paths of the jobs file start at."""
    names: dict[str, str]

    def run(
        self, part: Path, commands: Commands, environ: Mapping[str, str], limits: Limits, log: JobLog
    ) -> dict[str, int]:
        """Run the step; it writes into ``part`` what is to be kept, and counts what it found."""
        parameters = self.filled(part)
        if self.step.notebook is None:
            arguments = commands.arguments(self.step.command, parameters)
            return counts_of(commands.run(arguments, environ, log))
        from toolkit.entrypoints.notebook_runs import run_notebook  # papermill takes a second to load

        notebook = _notebook(self.step.notebook, self.base)
        known = {name: value for name, value in environ.items() if not name.startswith(_NOT_FOR_KERNELS)}
        done = run_notebook(
            notebook,
            parameters,
            part / notebook.name,
            timeout=limits.step,
            cell_timeout=limits.cell,
            environ=known,
        )
        counts: dict[str, int] = {}
        for result in done.results:
            counts |= counts_of(result)
        return counts

    def filled(self, out: Path) -> dict[str, Any]:
        """Return the parameters with ``out`` as the folder of the step."""
        found: dict[str, Any] = filled(dict(self.parameters), {**self.names, "out": str(out)}, self.step.name)
        return found


def prepare(job: Job, slot: datetime, base: Path, out: Path, commands: Commands) -> list[PreparedStep]:
    """Return every step of the job for ``slot``, checked: nothing starts while one of them is wrong.

    Raises:
        SettingsError: naming the step and what is wrong about it.
    """
    names = named_values(slot, job.schedule.zone)
    prepared = []
    for step in job.steps:
        ready = PreparedStep(step, step.parameters, base, names)
        try:
            parameters = ready.filled(out / step.name)
            if step.notebook is None:
                commands.arguments(step.command, parameters)
            else:
                from toolkit.entrypoints.notebook_runs.running import checked_parameters  # as above

                checked_parameters(_notebook(step.notebook, base), parameters)
        except (NotebookFailed, SettingsError) as error:
            raise SettingsError(f"job {job.name}, step {step.name}: {error}") from None
        prepared.append(ready)
    return prepared


def counts_of(document: Mapping[str, Any]) -> dict[str, int]:
    """Return the numbers of a result, and how many findings it lists; no text of it is kept."""
    counts: dict[str, int] = {}
    for name, value in document.items():
        if isinstance(value, bool):
            continue
        if isinstance(value, int):
            counts[name] = value
        elif isinstance(value, list) and name.lower().endswith("findings"):
            counts[name] = len(value)
        elif isinstance(value, Mapping):
            counts |= {f"{name}.{inner}": each for inner, each in counts_of(value).items()}
    return counts


def _notebook(named: str, base: Path) -> Path:
    with chdir(base):
        return find_notebook(named).absolute()
