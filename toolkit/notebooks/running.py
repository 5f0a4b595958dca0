"""Run a notebook for a scheduler: to its end, or with nothing under its output's name.

papermill does the work, with one time limit for all cells, and no kernel is left behind. The executed notebook
appears under its name only when every cell ran. One that failed, or that a signal stopped, stands beside it as
``<name>.failed.ipynb``. Errors in it are reduced to place and kind, with the text only of the toolkit's own
errors: those never hold personal data or secrets, and any other may quote the row that it stumbled over.
"""

import json
import math
import os
import re
import signal
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
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
from papermill.exceptions import PapermillException, PapermillExecutionError, strip_color
from traitlets.config import Config

from toolkit import errors
from toolkit.atomic_files import PrivateFolder
from toolkit.contract.people import secret_values
from toolkit.errors import KernelDied, NotebookFailed, NotebookTimedOut, SettingsError
from toolkit.kit.process import stop_signals_handled
from toolkit.message import Message
from toolkit.notebooks.packaged import is_installed, results_of
from toolkit.notebooks.parameters import Value, chosen_values, read_parameters


@dataclass(frozen=True, slots=True)
class NotebookRun:
    """A run that ended well; ``results`` are those of its displays (``notebook_results``)."""

    path: Path
    seconds: float
    results: tuple[dict[str, Any], ...]

    @property
    def needs_attention(self) -> bool:
        """Tell whether any display of the notebook asks for attention."""
        return any(result.get("needsAttention") for result in self.results)


def run_notebook(
    notebook: Path,
    given: Iterable[tuple[str, str]] = (),
    out: Path | None = None,
    *,
    timeout: float | None = None,
    environ: Mapping[str, str],
    progress_bar: bool = False,
) -> NotebookRun:
    """Execute ``notebook`` with the parameters ``given``, texts by name, and keep it as ``out``.

    Without ``out`` it is kept in the folder ``runs`` beside the notebook, under its name and the time (UTC); for a
    notebook of an installed package, in the folder ``runs`` of the current one.
    ``timeout`` is in seconds and for the whole run; ``environ`` is what the kernel gets.

    Raises:
        SettingsError: an unknown parameter or a text that does not fit; nothing ran.
        NotebookFailed: a cell failed, the time was up, or the kernel died; nothing stands under ``out``.
    """
    watch = Watch(timeout, environ)
    parameters = checked_parameters(notebook, given)
    out = _target(notebook, out)
    failed = out.with_name(f"{out.stem}.failed.ipynb")
    with PrivateFolder(out.parent) as scratch:
        draft = scratch / out.name
        try:
            executed = _execute(notebook, parameters, watch, progress_bar)
        except (NotebookFailed, SystemExit, KeyboardInterrupt) as error:  # the latter two by a signal
            kept = ""
            if watch.client is not None:
                _cut_errors(watch.client.nb)
                _write(watch.client.nb, draft, failed, environ)
                kept = Message("\nWhat ran until then is in {}", failed)
            if not isinstance(error, NotebookFailed):
                raise
            message = Message("{} {}{}", notebook.name, error.message, kept)
            raise type(error)(message, cell_error=error.cell_error) from None
        _write(executed, draft, out, environ)
        failed.unlink(missing_ok=True)
    return NotebookRun(out, watch.seconds, results_of(executed))


def checked_parameters(notebook: Path, given: Iterable[tuple[str, str]]) -> Mapping[str, Value]:
    """Return the parameters of a run as values, each known to the notebook and of its default's type.

    Raises:
        SettingsError: an unknown name, a value that does not fit, a secret.
        NotebookFailed: it is not a notebook, or has no proper parameters cell.
    """
    try:
        found = nbformat.read(notebook, as_version=4)
    except (ValueError, AttributeError, nbformat.ValidationError):
        raise NotebookFailed("{}: this is not a notebook.", notebook) from None
    return chosen_values(read_parameters(found), given, notebook.name)


def _target(notebook: Path, out: Path | None) -> Path:
    if out is None:
        beside = Path.cwd() if is_installed(notebook) else notebook.absolute().parent
        out = beside / "runs" / f"{notebook.stem}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.ipynb"
    if out.suffix != ".ipynb":
        raise SettingsError("{}: the name of an executed notebook ends with .ipynb", out)
    if out.exists() and out.samefile(notebook):
        raise SettingsError("{}: the executed notebook would replace the notebook itself.", out)
    return out


def _write(notebook: nbformat.NotebookNode, draft: Path, path: Path, environ: Mapping[str, str]) -> None:
    """Write an executed notebook without the secrets of the environment, which a cell may have printed."""
    notebook.metadata.papermill["output_path"] = str(path)
    text = nbformat.writes(notebook)
    for secret in secret_values(environ):
        text = text.replace(json.dumps(secret, ensure_ascii=False)[1:-1], "(a secret, left out)")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)


_KERNEL_START: Final = 60  # seconds that a kernel may take to start

_SYSTEM_VARIABLES: Final = ("HOME", "LANG", "PATH", "TMPDIR")
"""Variables of this process that a kernel gets where the run's own environment lacks them."""


@dataclass(slots=True)
class Watch:
    """The time limit of a run, its kernel with the environment, and the signal that stopped it, if any."""

    timeout: float | None
    environ: Mapping[str, str] = field(repr=False)
    started: float = field(default_factory=time.monotonic)
    client: PapermillNotebookClient | None = None
    stopped_by: int | None = None

    @property
    def seconds(self) -> float:
        """Seconds since the run began."""
        return time.monotonic() - self.started

    def remaining(self, _cell: object = None) -> float | None:
        """Return the seconds that are left, hardly any where the time is up; ``None`` without a limit."""
        return None if self.timeout is None else max(self.timeout - self.seconds, 0.01)

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

    @staticmethod
    def interruption(number: int) -> BaseException:
        """Return the exception that Python and shells expect of a program stopped by this signal."""
        return KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number)


class _WholeRunEngine(Engine):  # type: ignore[misc]  # papermill ships no types
    """Executes with one time limit for all cells, and leaves no kernel behind."""

    @classmethod
    def execute_managed_notebook(cls, nb_man: Any, kernel_name: str, *, watch: Watch, **_: Any) -> None:
        watch.client = client = PapermillNotebookClient(
            nb_man,
            kernel_name=kernel_name,
            startup_timeout=math.ceil(min(_KERNEL_START, watch.remaining() or _KERNEL_START)),
            timeout_func=watch.remaining,
            on_notebook_start=watch.kill_if_stopped,
            shell_timeout_interval=1,
            shutdown_kernel="immediate",
            config=Config({"KernelManager": {"transport_encryption": "auto"}}),
        )
        system = {name: os.environ[name] for name in _SYSTEM_VARIABLES if name in os.environ}
        # Kernels of this environment first: one of another, which JUPYTER_PATH may name, has no toolkit.
        folders = client.create_kernel_manager().kernel_spec_manager.kernel_dirs
        folders.insert(0, f"{sys.prefix}/share/jupyter/kernels")
        client.reset_execution_trackers()
        with client.setup_kernel(env={**system, **watch.environ}):
            client.papermill_execute_cells()


papermill_engines.register("toolkit", _WholeRunEngine)


def _execute(
    notebook: Path, parameters: Mapping[str, Value], watch: Watch, progress_bar: bool
) -> nbformat.NotebookNode:
    """Run every cell; the client of ``watch`` has the notebook as far as it ran.

    Raises:
        NotebookFailed: why it did not run to its end.
        KeyboardInterrupt, SystemExit: a signal stopped it.
    """
    failed: NotebookFailed | None = None
    try:
        with stop_signals_handled(watch.stop):
            executed: nbformat.NotebookNode = papermill.execute_notebook(
                str(notebook).replace("{", "{{").replace("}", "}}"),  # papermill fills in what stands in braces
                None,
                parameters,
                engine_name="toolkit",
                progress_bar=progress_bar,
                watch=watch,
            )
    except _FAILURES as error:
        failed = _failure(error, watch)
    if watch.stopped_by is not None:
        raise watch.interruption(watch.stopped_by)
    if failed is not None:
        raise failed
    for cell in executed.cells:
        # papermill takes sys.exit(0) for success though the cells after it never ran.
        if any(output.output_type == "error" for output in cell.get("outputs", ())):
            raise NotebookFailed("left at In [{}], before its end.", cell.execution_count)
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


def _failure(error: Exception, watch: Watch) -> NotebookFailed:
    match error:
        case PapermillExecutionError():
            text = _text(error.ename, error.evalue, error.traceback)
            message = Message("failed at In [{}]: {}: {}", error.exec_count, error.ename, text)
            return NotebookFailed(message, cell_error=error.ename)
        case CellTimeoutError():
            return NotebookTimedOut(Message("took longer than {:g} seconds and was stopped.", watch.timeout))
        case DeadKernelError():
            return KernelDied("lost its kernel, which died (perhaps it ran out of memory).")
        case NoSuchKernel():
            return NotebookFailed("needs the kernel {!r}, which is not installed here.", error.name)
        case RuntimeError() if str(error).startswith("Kernel"):  # it died or stood still at its start
            return KernelDied("has a kernel that did not start.")
    return NotebookFailed("could not be run: {}", error)


_OURS: Final = {
    name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, errors.ToolkitError)
}
_LEFT_OUT: Final = Message(
    "(its text is left out here, because it may quote data; run the notebook in JupyterLab to see it)"
)
_OUR_PLACE: Final = re.compile(
    r"Cell In|File (?!.*site-packages).*[/\\]toolkit[/\\]\S*, in |File .*site-packages[/\\]toolkit[/\\]\S*, in "
)
"""A cell, or a module of this package; a project folder called ``toolkit`` holds the packages of others, too."""
_OF_SYSTEM: Final = re.compile(r"\[Errno (\d{1,3})\] ")
_FRAME: Final = re.compile(r"^(?:File .+?:\d+, in \w+|Cell In\[\d+\], line \d+)", re.MULTILINE)


def _cut_errors(notebook: nbformat.NotebookNode) -> None:
    """Reduce each error in the outputs to its kind and its traceback's places, without any text of others."""
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if output.output_type == "error":
                places = _places(output.traceback)
                output.evalue = _text(output.ename, output.evalue, output.traceback)
                output.traceback = [*places, f"{output.ename}: {output.evalue}"]


def _places(traceback: list[str]) -> list[str]:
    return _FRAME.findall(strip_color("\n".join(traceback)))


def _text(name: str, text: str, traceback: list[str]) -> str:
    """Return the text of an error of the toolkit, known by name and module: pandas has ``DatabaseError`` too."""
    if of_system := _OF_SYSTEM.match(text):  # without the path behind it
        return os.strerror(int(of_system[1]))
    places = _places(traceback)
    if name not in _OURS or (places and not _OUR_PLACE.match(places[-1])):
        return _LEFT_OUT
    last_line = strip_color(traceback[-1]) if traceback and not places else ""  # in the reader's language
    return last_line.removeprefix(f"{name}: ") if last_line.startswith(f"{name}: ") else text
