"""The parts that all notebook calls share: application context, paths, errors without traceback."""

import functools
import inspect
import os
import traceback
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar

from toolkit.entrypoints.application_context import ApplicationContext
from toolkit.entrypoints.file_mode import files_for_owner_and_group
from toolkit.entrypoints.notebooks.injected_parameters import refuse_unknown_parameters
from toolkit.entrypoints.spoken import complaint
from toolkit.errors import InvalidInput, NotebookFailed, SettingsError, ToolkitError
from toolkit.settings import Settings

P = ParamSpec("P")
R = TypeVar("R")

_PACKAGE: Final = str(Path(__file__).parents[1])


def application() -> closing[ApplicationContext]:
    """Return the application that the kernel's environment describes, to be closed at the end of a block."""
    return closing(ApplicationContext(Settings.from_environment(os.environ)))


def told_plainly(call: Callable[P, R]) -> Callable[P, R]:
    """Let ``call`` fail with one sentence in the notebook instead of a traceback.

    The texts of our own errors are made for people and hold no personal data. Any other error may quote data,
    so only its kind and its place are told.
    """

    @functools.wraps(call)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            refuse_unknown_parameters()
            _refuse_other_kinds(inspect.signature(call).bind(*args, **kwargs))
            with files_for_owner_and_group(os.environ):
                return call(*args, **kwargs)
        except ToolkitError as error:
            raise _plain(error) from None
        except MemoryError:
            raise
        except OSError as error:
            raise _plain(InvalidInput(f"{error.strerror}: {error.filename}")) from None
        except Exception as error:
            raise _plain(NotebookFailed(f"Unexpected {type(error).__name__} {_place(error)}.")) from None

    return wrapped


def _refuse_other_kinds(given: inspect.BoundArguments) -> None:
    """Refuse a value that is no text, truth value or number above zero where the default is one.

    papermill alone takes ``-p as_of 2026`` for a number, and ``-p upload false`` for a text, which counts as true.
    """
    for name, value in given.arguments.items():
        kind = type(given.signature.parameters[name].default)
        if kind is bool and not isinstance(value, bool):
            raise SettingsError(f"{name} must be True or False, and not {_kind(value)}.")
        if kind is int and (type(value) is not int or value < 1):
            raise SettingsError(f"{name} must be a whole number above zero.")
        if kind is str and not isinstance(value, (str, Path)):
            raise SettingsError(
                f"{name} must be a text, and not {_kind(value)}: put it in quotation marks, or use -r."
            )


def _kind(value: object) -> str:
    return f"a value of the type {type(value).__name__}"


def _plain(error: ToolkitError) -> ToolkitError:
    """Return the error, shown by IPython as one line."""
    line = f"{type(error).__name__}: {in_parameters(complaint(error))}"
    vars(error)["_render_traceback_"] = lambda: [line]
    return error


_PARAMETERS: Final = {
    "--map HEADING=field": 'headings={"HEADING": "field"}',
    "--map HEADING=-": 'headings={"HEADING": "-"}',
    "--map CABEÇALHO=campo": 'headings={"CABEÇALHO": "campo"}',
    "--confirm-disappearance": "toolkit audit --confirm-disappearance",
    "--as-of": "as_of",
    "--format": "formats",
    "--no-sync": "sync=False",
    "--no-verify": "verify=False",
    "--pad-cpf": "pad_cpf=True",
    "--out": "out",
    "--encoding": "encoding",
    "--delimiter": "delimiter",
    "--sheet": "sheet",
}
"""The options that advice names, as parameters of a notebook; for what no notebook does, as a command."""


def in_parameters(advice: str) -> str:
    """Return the same advice with the parameters of a notebook in the place of options."""
    for option, parameter in _PARAMETERS.items():
        advice = advice.replace(option, parameter)
    return advice


def _place(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if frame.filename.startswith(_PACKAGE)]
    return f"at {Path(ours[-1].filename).name}:{ours[-1].lineno}"


def given_paths(given: str | Path | Sequence[str | Path]) -> list[Path]:
    """Return one path or several; empty texts are left out.

    Raises:
        SettingsError: something in it is no path.
    """
    several: Sequence[Any] = given if isinstance(given, (list, tuple)) else [given]
    for each in several:
        if not isinstance(each, (str, Path)):
            raise SettingsError(f"A file or folder must be named by a text, and not by {_kind(each)}.")
    return [given_path(each) for each in several if str(each).strip()]


def given_path(given: str | Path) -> Path:
    """Return a path, absolute: relative ones start at the working folder.

    ``make lab`` names it, the folder at the top of the file browser. Else it is the current directory. A kernel's
    is the folder of its notebook; where that is the project's ``notebooks``, paths start at the project, so that
    the same parameters do the same here and from the command line.
    """
    here = Path.cwd()
    if here.name == "notebooks" and (here.parent / "pyproject.toml").exists():
        here = here.parent
    return (working_folder() or here) / Path(given).expanduser()


def working_folder() -> Path | None:
    """Return the folder that JupyterLab's file browser shows, where ``make lab`` started it."""
    named = os.environ.get("TOOLKIT_WORK")
    return Path(named) if named else None
