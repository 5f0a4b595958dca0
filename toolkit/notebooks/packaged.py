"""Find, name and copy the notebooks that come with the toolkit.

In a checkout they are its folder ``notebooks``. A wheel carries them as data files: they are installed as
``share/evidence-toolkit/notebooks`` of the environment.
"""

from __future__ import annotations

import json
import re
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from toolkit.errors import NotebookFailed, SettingsError
from toolkit.kit.shown import RESULT_TYPE
from toolkit.kit.spoken import _, current_language

if TYPE_CHECKING:  # nbformat takes longer to import than everything else that a kernel needs
    from nbformat import NotebookNode

_CHECKOUT: Final = Path(__file__).parents[2]
_QUESTIONS: Final = {"en": "Question", "pt-BR": "Pergunta"}
"""The word before the question of a notebook, which its first cell asks in each language."""


def question_of(notebook: Path) -> str:
    """Return the question that a notebook answers, from its first cell, in the language that is spoken."""
    first = json.loads(notebook.read_text(encoding="utf-8"))["cells"][0]["source"]
    asked = rf"\*\*{_QUESTIONS[current_language().code]}:\*\*\s*(.+?)(?:\n\n|\Z)"
    found = re.search(asked, "".join(first), re.DOTALL)
    return " ".join(found[1].split()) if found else ""


def is_installed(notebook: Path) -> bool:
    """Tell whether the notebook lies in an installation, where nothing is written beside it."""
    return not _in_checkout() and notebook in packaged_notebooks().values()


def _in_checkout() -> bool:
    return (_CHECKOUT / "pyproject.toml").is_file() and (_CHECKOUT / "notebooks").is_dir()


@cache
def packaged_notebooks() -> dict[str, Path]:
    """Return every notebook of the toolkit by the name that ``toolkit run`` takes, in the order of their numbers.

    Raises:
        NotebookFailed: the installation lacks them.
    """
    if _in_checkout():
        files = [*(_CHECKOUT / "notebooks").glob("*.ipynb")]
    else:
        installed = metadata.files("evidence-toolkit") or []
        files = [Path(str(file.locate())).resolve() for file in installed if file.suffix == ".ipynb"]
    if not files:
        raise NotebookFailed("This installation lacks its notebooks; install evidence-toolkit again.")
    return {file.stem: file for file in sorted(files)}


def find_notebook(named: str) -> Path:
    """Return the notebook that ``named`` means: a file, or else a packaged notebook by its name.

    A packaged notebook is also found as ``notebooks/NAME.ipynb``, its path in a checkout.

    Raises:
        SettingsError: there is no such file and no such name; the text names those that there are.
    """
    path = Path(named)
    for candidate in (path, Path(f"{named}.ipynb")):
        if candidate.is_file():
            return candidate
    packaged = packaged_notebooks()
    name = path.name.removesuffix(".ipynb")
    if name in packaged and str(path.parent) in {".", "notebooks"}:
        return packaged[name]
    raise SettingsError("{!r}: there is no such notebook. The toolkit comes with {}.", named, ", ".join(packaged))


def copy_notebooks(folder: Path, *, replace: bool = False) -> tuple[list[Path], list[Path]]:
    """Copy every packaged notebook into ``folder``; return the copies, and those that were there and were kept.

    A file there that is another one is kept, unless ``replace`` is asked for.
    """
    folder.mkdir(parents=True, exist_ok=True)
    copied, kept = [], []
    for source in packaged_notebooks().values():
        target, content = folder / source.name, _spoken(source.read_text(encoding="utf-8")).encode()
        if not replace and target.exists() and target.read_bytes() != content:
            kept.append(target)
        else:
            target.write_bytes(content)
            copied.append(target)
    return copied, kept


def _spoken(notebook: str) -> str:
    """Return a notebook with the comments of its parameters in the language that is spoken."""
    for cell in json.loads(notebook)["cells"]:
        if "parameters" in cell["metadata"].get("tags", ()):
            for line in cell["source"]:
                _before, mark, comment = line.rstrip("\n").partition("  # ")
                written, said = (json.dumps(each, ensure_ascii=False)[1:-1] for each in (comment, _(comment)))
                notebook = notebook.replace(f"{mark}{written}", f"{mark}{said}") if mark else notebook
    return notebook


def results_of(notebook: NotebookNode) -> tuple[dict[str, Any], ...]:
    """Return the results that an executed notebook holds, in the order of its cells."""
    return tuple(
        dict(output.data[RESULT_TYPE])
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if RESULT_TYPE in output.get("data", {})
    )
