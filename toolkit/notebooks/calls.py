"""The parts that all notebook calls share: application context, paths, errors without traceback, displays.

A display is a sentence or a plain table, a bundle of HTML and text as Jupyter takes it, which stays readable
wherever the notebook is opened. pandas writes the tables, and everything is escaped.
"""

import ast
import functools
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from difflib import get_close_matches
from html import escape
from pathlib import Path
from typing import Any, Final, Generic, ParamSpec, TypeVar
from urllib.parse import quote

import pandas as pd
from IPython.core.getipython import get_ipython
from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

from toolkit.errors import InvalidInput, NotebookFailed, SettingsError, ToolkitError
from toolkit.kit.context import ApplicationContext
from toolkit.kit.process import files_for_owner_and_group
from toolkit.kit.spoken import ProgressBar, _, current_language, format_error, translate
from toolkit.notebooks.packaged import RESULT_TYPE
from toolkit.progress import Progress
from toolkit.settings import Settings, expanded

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

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
            raise _plain(InvalidInput("{}: {}", error.strerror, error.filename)) from None
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
            raise SettingsError("{} must be True or False, and not {}.", name, _kind(value))
        if kind is int and (type(value) is not int or value < 1):
            raise SettingsError("{} must be a whole number above zero.", name)
        if kind is str and not isinstance(value, (str, Path)):
            raise SettingsError(
                "{} must be a text, and not {}: put it in quotation marks, or use -r.", name, _kind(value)
            )


def _kind(value: object) -> str:
    return f"a value of the type {type(value).__name__}"


def _plain(error: ToolkitError) -> ToolkitError:
    """Return the error, shown by IPython as one line."""
    line = f"{type(error).__name__}: {format_error(error)}"
    vars(error)["_render_traceback_"] = lambda: [line]
    return error


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
            raise SettingsError("A file or folder must be named by a text, and not by {}.", _kind(each))
    return [given_path(each) for each in several if str(each).strip()]


def given_path(given: str | Path) -> Path:
    """Return a path, absolute: relative ones start at the working folder.

    That is the folder at the top of the file browser, which ``make lab`` names in TOOLKIT_WORK, else the current
    directory. Where that is the ``notebooks`` of a checkout, paths start at the checkout, as on the command line.
    """
    here = Path(os.environ.get("TOOLKIT_WORK") or Path.cwd())
    if here.name == "notebooks" and (here.parent / "pyproject.toml").exists():
        here = here.parent
    return here / expanded(given)


_MARK: Final = "# Parameters"
"""The first line of the cell that papermill writes."""


def refuse_unknown_parameters() -> None:
    """Refuse what papermill set and no cell before it did; nothing to do outside a notebook.

    Raises:
        SettingsError: naming the parameter, and the one that was probably meant.
    """
    shell = get_ipython()
    if shell is None:
        return
    unknown, known = _unknown_names(shell.user_ns.get("In", ()))
    if unknown:
        near = get_close_matches(unknown[0], known, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise SettingsError(
            "This notebook has no parameter {!r}.{} It has: {}", unknown[0], hint, ", ".join(known) or "none"
        )


def _unknown_names(executed: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the names that the last cell of papermill's sets beyond those of the cells before it, and these."""
    written = [number for number, source in enumerate(executed) if source.partition("\n")[0].strip() == _MARK]
    if not written:
        return [], []
    known = list(dict.fromkeys(name for source in executed[: written[-1]] for name in _assigned(source)))
    return [name for name in _assigned(executed[written[-1]]) if name not in known], known


def _assigned(source: str) -> list[str]:
    try:
        nodes = ast.walk(ast.parse(source))
    except SyntaxError:  # a magic, or a cell that failed
        return []
    return [node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]


def cell_progress() -> Progress:
    """Return the progress of a cell: bars in a front end or a terminal, none in an executed notebook."""
    parent: dict[str, Any] = getattr(get_ipython(), "get_parent", dict)()
    # JupyterLab lets a cell ask a person; papermill and nbclient keep whatever a bar writes.
    return ProgressBar(sys.stderr, shown=bool(parent.get("content", {}).get("allow_stdin")))


Bundle = dict[str, Any]
"""A display by media type."""

SHOWN: Final = 500
"""Rows of a table that are shown."""


def figures(heading: str, facts: Mapping[str, int | str], below: str = "") -> Bundle:
    """Show figures by their labels in one row under a heading, with a sentence below."""
    named = {_(label): _cell(value) for label, value in facts.items()}
    under = f"<p>{escape(translate(below))}</p>" if below else ""
    told = ", ".join(f"{label} {value}" for label, value in named.items())
    shown = _html(translate(heading), pd.DataFrame([named])) + under
    return {"text/html": shown, "text/plain": f"{translate(heading)}: {told}"}


def table(heading: str, columns: Sequence[str], rows: Iterable[Sequence[object]], total: int = 0) -> Bundle:
    """Show the first rows of a table; ``total`` tells how many there are where ``rows`` holds fewer."""
    every = list(rows)
    if not every:
        return remark(heading, _("none"))
    total, shown = max(total, len(every)), every[:SHOWN]
    number = _cell(len(shown)) + (f" / {_cell(total)}" if total > len(shown) else "")
    titled, names = f"{translate(heading)} ({number})", [_(name) for name in columns]
    cells = [[_cell(value) for value in row] for row in shown]
    told = "\n".join("\t".join(row) for row in (names, *cells))
    return {"text/html": _html(titled, pd.DataFrame(cells, columns=names)), "text/plain": f"{titled}\n{told}"}


def _html(heading: str, frame: pd.DataFrame) -> str:
    with pd.option_context("display.max_colwidth", None):
        return f"<h4>{escape(heading)}</h4>{frame.to_html(index=False, border=0, justify='left')}"


def _cell(value: object) -> str:
    return current_language().number(round(value, 1)) if isinstance(value, (int, float)) else str(value)


def links(heading: str, paths: Sequence[Path]) -> Bundle:
    """Show files that were written, as links that a file browser around the notebook opens."""
    here = Path.cwd()
    told = ", ".join(
        f'<a href="{escape(quote(os.path.relpath(path, here)))}">{escape(str(path))}</a>' for path in paths
    )
    shown = f"<p>{escape(_(heading))}: {told}</p>"
    return {"text/html": shown, "text/plain": f"{_(heading)}: {', '.join(map(str, paths))}"}


def remark(subject: str, text: str) -> Bundle:
    """Show a sentence about a subject."""
    told = translate(text)
    shown = f"<p><b>{escape(_(subject))}</b>: {escape(told)}</p>"
    return {"text/html": shown, "text/plain": f"{_(subject)}: {told}"}


def show(part: Bundle) -> None:
    """Show one part now; in a script, which has no cells, as text on stderr."""
    if InteractiveShell.initialized():
        display(part, raw=True)
    else:
        print(part["text/plain"], file=sys.stderr)


@dataclass(frozen=True, slots=True, repr=False)
class Shown(Generic[T]):
    """The value that an operation returned, shown as ``parts``; programs read its ``counts``.

    In a script, use ``result``; in a notebook, end a cell with the object.
    """

    result: T
    parts: Sequence[Bundle]
    counts: Mapping[str, Any]

    def _ipython_display_(self) -> None:
        for number, part in enumerate(self.parts):
            display(part | ({RESULT_TYPE: dict(self.counts)} if number == 0 else {}), raw=True)

    def __repr__(self) -> str:
        return "\n".join(part["text/plain"] for part in self.parts)
