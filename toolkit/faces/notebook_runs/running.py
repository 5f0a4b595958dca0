"""Run a notebook to its end, or not at all: what a scheduler calls at night.

papermill executes; what it leaves open is closed here. The whole run has a time limit. The executed notebook
appears under its name only when every cell ran; one that failed stands beside it as ``<name>.failed.ipynb``,
its error texts cut to what cannot quote data. No kernel outlives the run, whether it ends, is stopped by
SIGTERM or Ctrl-C, or takes too long.
"""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
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

from toolkit.errors import NotebookFailed, SettingsError
from toolkit.faces.notebook_results import results_of
from toolkit.faces.notebook_runs.failures import cut_errors, described_failure
from toolkit.faces.notebook_runs.parameters import Value, chosen_values, read_parameters

_KERNEL_START: Final = 60
"""Seconds that a kernel may take to start."""

_SYSTEM_VARIABLES: Final = ("HOME", "LANG", "PATH", "TMPDIR")
"""What a kernel needs of this process's environment, where the run's own does not say it."""


@dataclass(frozen=True, slots=True)
class NotebookRun:
    """A run that came to its end; ``results`` are what its displays told (``notebook_results``)."""

    path: Path
    seconds: float
    results: tuple[dict[str, Any], ...]

    @property
    def needs_attention(self) -> bool:
        """Whether any display of the notebook says so."""
        return any(result.get("needsAttention") for result in self.results)


def run_notebook(
    notebook: Path,
    given: Iterable[tuple[str, str]] = (),
    out: Path | None = None,
    *,
    timeout: float | None = None,
    environ: Mapping[str, str] = os.environ,
    progress_bar: bool = False,
) -> NotebookRun:
    """Execute ``notebook`` with the parameter texts ``given`` and keep it as ``out``.

    Without ``out`` it is kept in the folder ``runs`` beside the notebook, under its name and the time (UTC).
    ``timeout`` is in seconds and for the whole run; ``environ`` is what the kernel gets.

    Raises:
        SettingsError: an unknown parameter or a text that does not fit; nothing ran.
        NotebookFailed: a cell failed, the time was up, or the kernel died; nothing stands under ``out``.
    """
    watch = _Watch(timeout)
    parameters = chosen_values(read_parameters(_read(notebook)), given, notebook.name)
    out = _target(notebook, out)
    partial = out.with_name(f".{out.stem}.{os.getpid()}.ipynb")
    failed = out.with_name(f"{out.stem}.failed.ipynb")
    try:
        with _stopped_by_signals(watch):
            executed = _execute(notebook, partial, parameters, watch, environ, progress_bar)
        executed.metadata.papermill["output_path"] = str(out)
        nbformat.write(executed, partial)
        partial.replace(out)
        failed.unlink(missing_ok=True)
    except NotebookFailed as error:
        kept = _keep_failed(partial, failed)
        raise NotebookFailed(f"{notebook.name} {error}{kept}") from None
    finally:
        partial.unlink(missing_ok=True)
    return NotebookRun(out, watch.seconds, results_of(executed))


def _read(notebook: Path) -> nbformat.NotebookNode:
    try:
        found: nbformat.NotebookNode = nbformat.read(notebook, as_version=4)
    except FileNotFoundError:
        raise NotebookFailed(f"{notebook}: there is no such notebook.") from None
    except (ValueError, AttributeError, nbformat.ValidationError):
        raise NotebookFailed(f"{notebook}: this is no notebook.") from None
    return found


def _target(notebook: Path, out: Path | None) -> Path:
    if out is None:
        out = notebook.absolute().parent / "runs" / f"{notebook.stem}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.ipynb"
    if out.suffix != ".ipynb":
        raise SettingsError(f"{out}: the name of an executed notebook ends with .ipynb")
    if out.exists() and out.samefile(notebook):
        raise SettingsError(f"{out}: the executed notebook would replace the notebook itself.")
    out.parent.mkdir(parents=True, exist_ok=True)
    return out


@dataclass(slots=True)
class _Watch:
    """How long a run has taken and may take, its kernel, and the signal that stopped it, if any."""

    timeout: float | None
    started: float = field(default_factory=time.monotonic)
    client: PapermillNotebookClient | None = None
    stopped_by: int | None = None

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    def remaining(self, _cell: object = None) -> float | None:
        return None if self.timeout is None else max(self.timeout - self.seconds, 0.01)

    def stop(self, number: int, _frame: FrameType | None) -> None:
        """Handle a signal: the run ends by the death of its kernel, not by an exception amid papermill."""
        again, self.stopped_by = self.stopped_by is not None, number
        provisioner = getattr(getattr(self.client, "km", None), "provisioner", None)
        group = getattr(provisioner, "pgid", None)
        if group is None or again:
            raise self.interruption(number)
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)

    def raise_if_stopped(self) -> None:
        if self.stopped_by is not None:
            raise self.interruption(self.stopped_by)

    @staticmethod
    def interruption(number: int) -> BaseException:
        return KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number)


class _WholeRunEngine(Engine):  # type: ignore[misc]  # papermill ships no types
    """papermill's way to execute, with one time limit for all cells and an end that no kernel outlives."""

    @classmethod
    def execute_managed_notebook(
        cls, nb_man: Any, kernel_name: str, *, watch: _Watch, environ: Mapping[str, str], **_: Any
    ) -> None:
        watch.client = PapermillNotebookClient(
            nb_man,
            kernel_name=kernel_name,
            startup_timeout=math.ceil(min(_KERNEL_START, watch.remaining() or _KERNEL_START)),
            timeout_func=watch.remaining,
            shell_timeout_interval=1,
            shutdown_kernel="immediate",
            config=Config({"KernelManager": {"transport_encryption": "auto"}}),
        )
        system = {name: os.environ[name] for name in _SYSTEM_VARIABLES if name in os.environ}
        watch.client.execute(env={**system, **environ})


papermill_engines.register("toolkit", _WholeRunEngine)


def _execute(
    notebook: Path,
    partial: Path,
    parameters: Mapping[str, Value],
    watch: _Watch,
    environ: Mapping[str, str],
    progress_bar: bool,
) -> nbformat.NotebookNode:
    try:
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
        raise NotebookFailed(_reason(error, watch)) from None
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
"""How papermill and what is beneath it tell that a notebook did not run."""


def _reason(error: Exception, watch: _Watch) -> str:
    if isinstance(error, PapermillExecutionError):
        return described_failure(error)
    if isinstance(error, CellTimeoutError):
        return f"took longer than {watch.timeout:g} seconds and was stopped."
    if isinstance(error, DeadKernelError):
        return "lost its kernel, which died (perhaps it ran out of memory)."
    if isinstance(error, NoSuchKernel):
        return f"needs the kernel {error.name!r}, which is not installed here."
    return f"could not be run: {error}"


def _literally(path: Path) -> str:
    """The path as papermill takes it: it would fill in what stands between braces."""
    return str(path).replace("{", "{{").replace("}", "}}")


def _refuse_early_end(executed: nbformat.NotebookNode) -> None:
    """Refuse what papermill takes for success: ``sys.exit(0)``, though the cells behind it never ran."""
    for cell in executed.cells:
        if any(output.output_type == "error" for output in cell.get("outputs", ())):
            raise NotebookFailed(f"left at In [{cell.execution_count}], before its end.")


def _keep_failed(partial: Path, failed: Path) -> str:
    if not partial.exists():
        return ""
    notebook = nbformat.read(partial, as_version=4)
    cut_errors(notebook)
    nbformat.write(notebook, partial)
    partial.replace(failed)
    return f" What ran until then is in {failed}"


@contextmanager
def _stopped_by_signals(watch: _Watch) -> Iterator[None]:
    """Let SIGTERM and Ctrl-C stop the run, where Python can take signals at all."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = {number: signal.signal(number, watch.stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
