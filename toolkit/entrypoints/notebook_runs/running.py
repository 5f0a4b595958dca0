"""Run a notebook for a scheduler: to its end, or with nothing under its output's name.

The executed notebook appears under its name only when every cell ran; one that failed stands beside it as
``<name>.failed.ipynb``, its error texts cut to what cannot quote data; so does one that a signal stopped.
"""

import errno
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import nbformat

from toolkit.domain.secret_texts import secret_values
from toolkit.entrypoints.notebook_results import results_of
from toolkit.entrypoints.notebook_runs.executing import Watch, execute
from toolkit.entrypoints.notebook_runs.failures import cut_errors
from toolkit.entrypoints.notebook_runs.parameters import Value, chosen_values, fitting_values, read_parameters
from toolkit.entrypoints.packaged_notebooks import is_installed
from toolkit.errors import NotebookFailed, SettingsError
from toolkit.operations.private_folder import PrivateFolder


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
    given: Iterable[tuple[str, str]] | Mapping[str, Value] = (),
    out: Path | None = None,
    *,
    timeout: float | None = None,
    cell_timeout: float | None = None,
    environ: Mapping[str, str] = os.environ,
    progress_bar: bool = False,
) -> NotebookRun:
    """Execute ``notebook`` with the parameters ``given``, texts or values by name, and keep it as ``out``.

    Without ``out`` it is kept in the folder ``runs`` beside the notebook, under its name and the time (UTC); for a
    notebook of an installed package, in the folder ``runs`` of the current one.
    ``timeout`` is in seconds and for the whole run, ``cell_timeout`` for each cell; ``environ`` is what the kernel
    gets.

    Raises:
        SettingsError: an unknown parameter or a text that does not fit; nothing ran.
        NotebookFailed: a cell failed, the time was up, or the kernel died; nothing stands under ``out``.
    """
    watch = Watch(timeout, cell_timeout)
    parameters = checked_parameters(notebook, given)
    out = _target(notebook, out)
    failed = out.with_name(f"{out.stem}.failed.ipynb")
    with PrivateFolder(out.parent) as scratch:
        partial = scratch / out.name
        try:
            executed = execute(
                notebook, partial, parameters, watch=watch, environ=environ, progress_bar=progress_bar
            )
            executed.metadata.papermill["output_path"] = str(out)
            _write(executed, partial, environ)
            partial.replace(out)
            failed.unlink(missing_ok=True)
        except NotebookFailed as error:
            kept = _keep_failed(partial, failed, environ)
            raise type(error)(f"{notebook.name} {error}{kept}", cell_error=error.cell_error) from None
        except (SystemExit, KeyboardInterrupt):  # a signal
            _keep_failed(partial, failed, environ)
            raise
    return NotebookRun(out, watch.seconds, results_of(executed))


def checked_parameters(
    notebook: Path, given: Iterable[tuple[str, str]] | Mapping[str, Value]
) -> Mapping[str, Value]:
    """Return the parameters of a run as values, each known to the notebook and of its default's type.

    Raises:
        SettingsError: an unknown name, a value that does not fit, a secret.
        NotebookFailed: there is no such notebook, or it has no proper parameters cell.
    """
    known = read_parameters(_read(notebook))
    if isinstance(given, Mapping):
        return fitting_values(known, given, notebook.name)
    return chosen_values(known, given, notebook.name)


def _read(notebook: Path) -> nbformat.NotebookNode:
    try:
        found: nbformat.NotebookNode = nbformat.read(notebook, as_version=4)
    except FileNotFoundError:
        raise NotebookFailed(f"{notebook}: there is no such notebook.") from None
    except (ValueError, AttributeError, nbformat.ValidationError):
        raise NotebookFailed(f"{notebook}: this is not a notebook.") from None
    return found


def _target(notebook: Path, out: Path | None) -> Path:
    if out is None:
        beside = Path.cwd() if is_installed(notebook) else notebook.absolute().parent
        out = beside / "runs" / f"{notebook.stem}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.ipynb"
    if out.suffix != ".ipynb":
        raise SettingsError(f"{out}: the name of an executed notebook ends with .ipynb")
    if out.exists() and out.samefile(notebook):
        raise SettingsError(f"{out}: the executed notebook would replace the notebook itself.")
    out.parent.mkdir(parents=True, exist_ok=True)
    if not os.access(out.parent, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(out))
    return out


def _keep_failed(partial: Path, failed: Path, environ: Mapping[str, str]) -> str:
    try:
        notebook = nbformat.read(partial, as_version=4)
    except (FileNotFoundError, ValueError):  # nothing ran yet, or a second signal came while it was written
        return ""
    cut_errors(notebook)
    _write(notebook, partial, environ)
    partial.replace(failed)
    return f"\nWhat ran until then is in {failed}"


def _write(notebook: nbformat.NotebookNode, path: Path, environ: Mapping[str, str]) -> None:
    """Write an executed notebook without the secrets of the environment, which a cell may have printed."""
    text = nbformat.writes(notebook)
    for secret in secret_values(environ):
        text = text.replace(json.dumps(secret, ensure_ascii=False)[1:-1], "(a secret, left out)")
    path.write_text(text, encoding="utf-8")
