"""Execute one notebook in a kernel of its own, with a time limit for the whole and an end to every kernel.

papermill does the work; what it leaves open is closed here.
"""

import math
import os
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Final

import nbformat
import papermill
from jupyter_client.kernelspec import NoSuchKernel
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from papermill.clientwrap import PapermillNotebookClient
from papermill.engines import Engine, papermill_engines
from papermill.exceptions import PapermillException, PapermillExecutionError
from traitlets.config import Config

from toolkit.entrypoints.notebook_runs.failures import described_failure
from toolkit.entrypoints.notebook_runs.parameters import Value
from toolkit.entrypoints.stop_signals import stop_signals_handled
from toolkit.errors import CellTimedOut, KernelDied, KernelOutOfMemory, NotebookFailed, NotebookTimedOut

_KERNEL_START: Final = 60
"""Seconds that a kernel may take to start."""

_COUNTERS: Final = Path("/proc/vmstat")

_SYSTEM_VARIABLES: Final = ("HOME", "LANG", "PATH", "TMPDIR")
"""Variables of this process that a kernel gets where the run's own environment lacks them."""


@dataclass(slots=True)
class Watch:
    """The time limits of a run, its kernel, and the signal that stopped it, if any."""

    timeout: float | None
    cell_timeout: float | None = None
    started: float = field(default_factory=time.monotonic)
    client: PapermillNotebookClient | None = None
    stopped_by: int | None = None

    @property
    def seconds(self) -> float:
        """Seconds since the run began."""
        return time.monotonic() - self.started

    def remaining(self) -> float | None:
        """Return the seconds that are left, hardly any where the time is up; ``None`` without a limit."""
        return None if self.timeout is None else max(self.timeout - self.seconds, 0.01)

    def remaining_for(self, _cell: object) -> float | None:
        """Return the seconds that the next cell may take."""
        limits = [limit for limit in (self.remaining(), self.cell_timeout) if limit is not None]
        return min(limits, default=None)

    def stop(self, number: int, _frame: FrameType | None) -> None:
        """Handle a signal by killing the kernel, which ends the run in an orderly way.

        A kernel that is about to start dies when it has; a second signal does not wait for that.
        """
        again, self.stopped_by = self.stopped_by is not None, number
        if self.client is None or again:
            raise self.interruption(number)
        self.kill_if_stopped()

    def kill_if_stopped(self, notebook: object = None) -> None:  # noqa: ARG002  # nbclient names it
        """Kill the kernel, with what it started in its process group, where a signal came and it is there."""
        provisioner = getattr(getattr(self.client, "km", None), "provisioner", None)
        group = getattr(provisioner, "pgid", None)
        if self.stopped_by is not None and group is not None:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)

    def raise_if_stopped(self) -> None:
        """Raise what the signal stands for, now that papermill has come to its end."""
        if self.stopped_by is not None:
            raise self.interruption(self.stopped_by)

    @staticmethod
    def interruption(number: int) -> BaseException:
        """Return the exception that Python and shells expect of a program stopped by this signal."""
        return KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number)


class _WholeRunEngine(Engine):  # type: ignore[misc]  # papermill ships no types
    """Executes with one time limit for all cells, and leaves no kernel behind."""

    @classmethod
    def execute_managed_notebook(
        cls, nb_man: Any, kernel_name: str, *, watch: Watch, environ: Mapping[str, str], **_: Any
    ) -> None:
        watch.client = PapermillNotebookClient(
            nb_man,
            kernel_name=kernel_name,
            startup_timeout=math.ceil(min(_KERNEL_START, watch.remaining() or _KERNEL_START)),
            timeout_func=watch.remaining_for,
            on_notebook_start=watch.kill_if_stopped,
            shell_timeout_interval=1,
            shutdown_kernel="immediate",
            config=Config({"KernelManager": {"transport_encryption": "auto"}}),
        )
        system = {name: os.environ[name] for name in _SYSTEM_VARIABLES if name in os.environ}
        watch.client.execute(env={**system, **environ})


papermill_engines.register("toolkit", _WholeRunEngine)


def execute(
    notebook: Path,
    partial: Path,
    parameters: Mapping[str, Value],
    *,
    watch: Watch,
    environ: Mapping[str, str],
    progress_bar: bool,
) -> nbformat.NotebookNode:
    """Run every cell; ``partial`` holds what ran so far, at any moment.

    Raises:
        NotebookFailed: why it did not run to its end.
        KeyboardInterrupt, SystemExit: a signal stopped it.
    """
    kills = _killed_for_memory()
    try:
        with stop_signals_handled(watch.stop):
            executed: nbformat.NotebookNode = papermill.execute_notebook(
                _literally(notebook),
                _literally(partial),
                parameters,
                engine_name="toolkit",
                progress_bar=progress_bar,
                watch=watch,
                environ=environ,
            )
    except _FAILURES as error:
        watch.raise_if_stopped()
        raise _failure(error, watch, out_of_memory=_killed_for_memory() > kills) from None
    watch.raise_if_stopped()
    _refuse_early_end(executed)
    return executed


_FAILURES: Final = (
    CellTimeoutError,
    DeadKernelError,
    NoSuchKernel,
    PapermillException,
    RuntimeError,
    ValueError,
    nbformat.ValidationError,
)
"""The exceptions by which papermill and its libraries say that a notebook did not run."""


def _failure(error: Exception, watch: Watch, *, out_of_memory: bool) -> NotebookFailed:
    if isinstance(error, PapermillExecutionError):
        if error.ename == MemoryError.__name__:
            return KernelOutOfMemory(described_failure(error))
        return NotebookFailed(described_failure(error), cell_error=error.ename)
    if isinstance(error, CellTimeoutError):
        if watch.timeout is None or watch.seconds < watch.timeout:
            return CellTimedOut(
                f"has a cell that took longer than {watch.cell_timeout:g} seconds; it was stopped."
            )
        return NotebookTimedOut(f"took longer than {watch.timeout:g} seconds and was stopped.")
    if isinstance(error, DeadKernelError):
        if out_of_memory:
            return KernelOutOfMemory(
                "lost its kernel while the system killed a process because the memory ran out."
            )
        return KernelDied("lost its kernel, which died (perhaps it ran out of memory).")
    if isinstance(error, NoSuchKernel):
        return NotebookFailed(f"needs the kernel {error.name!r}, which is not installed here.")
    if isinstance(error, RuntimeError) and str(error).startswith("Kernel"):  # it died or stood still at its start
        return KernelDied("has a kernel that did not start.")
    return NotebookFailed(f"could not be run: {error}")


def _killed_for_memory() -> int:
    """Return how many processes this machine killed for lack of memory; 0 where it does not tell."""
    try:
        counters = dict(line.split() for line in _COUNTERS.read_text().splitlines())
    except OSError:
        return 0
    return int(counters.get("oom_kill", 0))


def _literally(path: Path) -> str:
    """Return the path as papermill takes it: it would fill in what stands between braces."""
    return str(path).replace("{", "{{").replace("}", "}}")


def _refuse_early_end(executed: nbformat.NotebookNode) -> None:
    """Refuse ``sys.exit(0)``, which papermill takes for success though the cells after it never ran."""
    for cell in executed.cells:
        if any(output.output_type == "error" for output in cell.get("outputs", ())):
            raise NotebookFailed(f"left at In [{cell.execution_count}], before its end.")
