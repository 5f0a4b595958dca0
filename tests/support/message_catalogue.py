"""The messages that translators translate: those of reports, and those of commands, notebooks and errors."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from itertools import count, product
from pathlib import Path
from typing import Any

import click
from babel.messages.extract import extract_from_dir

import toolkit
from toolkit import cli, errors
from toolkit.cli import explain, sale_case
from toolkit.cli.printing import pieces
from toolkit.contract import fields
from toolkit.contract.clients import QualityWarning
from toolkit.contract.codes import CODES, Owner, Severity, Subject
from toolkit.contract.findings import FindingStatus, Status
from toolkit.evidence.bulk_credentials import LeftOutReason
from toolkit.evidence.contents import Failure
from toolkit.intake import checks
from toolkit.intake import clients as loads
from toolkit.intake.quality import QUALITY_TEXTS, Likeness
from toolkit.intake.results import WARNINGS, Repair
from toolkit.intake.text_tables import TOO_MANY, UNCLOSED
from toolkit.intake.workbooks import _REFUSALS
from toolkit.jobs import notices, runs
from toolkit.reports import audited, lists, wording
from toolkit.reports import lists as columns
from toolkit.reports.report import TITLE

PACKAGE = Path(toolkit.__file__).parent
FOLDER = PACKAGE / "reports"

_OF_REPORTS = {"say": None, "text": None, "_": None, "count": (1, 2), "ngettext": (1, 2)}
_METHODS = [("**.py", "python"), ("templates/**.j2", "jinja2")]

_TOLD = {"show", "note", "_", "sentence"}
"""The functions of entrypoints that people read the argument of."""
_ERRORS = {name for name, each in vars(errors).items() if isinstance(each, type) and issubclass(each, Exception)}

_CODE = re.compile(r"[a-z]+[A-Z]\w*")
"""The name of a column of the contract."""

_CLICK_TEXTS = (
    "Usage: {1}",
    "Try '{1}' for help.",
    "Error: {1}",
    "Error: Missing argument {1}.",
    "Error: Missing option {1}.",
    "Error: Missing command.",
    "Invalid value: {1}",
    "Invalid value for {1}: {2}",
    "No such option {1}.",
    "No such option {1}. Did you mean {2}?",
    "No such command {1}.",
    "No such command {1}. Did you mean {2}?",
    "Option {1} requires an argument.",
    "Option {1} does not take a value.",
    "Got unexpected extra argument ({1})",
    "Got unexpected extra arguments ({1})",
    "{1} is not one of {2}.",
    "{1} is not a valid integer.",
    "{1} is not a valid number.",
    "{1} is not in the range {2}.",
    "File {1} does not exist.",
    "Path {1} does not exist.",
    "Directory {1} does not exist.",
    "File {1} is a directory.",
    "Directory {1} is a file.",
)
"""What click says of a wrong usage, ``{1}`` and ``{2}`` for its values."""

_EXAMPLES = re.compile(r" +\S+( \S+)*(\n +\S+( \S+)*)*")
"""Commands without a word about them."""

_HELP_TEXTS = (
    "required",
    "default",
    "Options",
    "Commands",
    "Show this message and exit.",
    "Show the version and exit.",
)
"""What click writes in every help."""

_OPEN = {
    "The {1} {2}.",
    "The {1} {2}. {3}",
    "The database at {1} does not answer{2}. {3}",
    "{1}: {{2}} stands for nothing.{3} There are: {4}",
}
"""Texts that fit too much to be translated; the known ones of what they make stand whole in ``_COMPOSED``."""

Template = str


def messages() -> set[str | tuple[str, ...]]:
    """Every message: those that stand in calls, the names and sentences of tables, and what codes are called."""
    called = {message for _, _, message, _, _ in extract_from_dir(str(FOLDER), _METHODS, keywords=_OF_REPORTS)}
    composed = extract_from_dir(str(PACKAGE), [("**.py", "python")], keywords={"Message": None})
    called |= {str(message).strip() for _, _, message, _, _ in composed}
    found: set[Any] = called.union(_counted(), _of_tables(), _of_codes(), _of_loops(), templates())
    return found - {""} - {each[0] for each in found if isinstance(each, tuple)}  # gettext has these, too


def templates() -> set[Template]:
    """Return the texts of commands and errors, with ``{1}``, ``{2}`` in the place of values."""
    found: set[Template] = set()
    for path in _entrypoints():
        found |= set(_templates_in(path, _in_calls)) | set(_templates_in(path, _in_displays))
    for path in PACKAGE.rglob("*.py"):
        found |= set(_templates_in(path, _in_tasks))
    for path in PACKAGE.rglob("*.py"):
        if "http" not in path.parts[-2:]:  # which answers programs
            found |= set(_templates_in(path, _in_errors)) | set(_templates_in(path, _in_rejections))
    for text in _REFUSALS.values():
        places = count(2)
        found.add("{1}: " + re.sub(r"\{\w+\}", lambda _, places=places: f"{{{next(places)}}}", text))  # type: ignore[misc]
    return found - _OPEN


def _entrypoints() -> Iterator[Path]:
    for room in ("entrypoints", "cli", "kit", "jobs", "notebooks"):
        yield from (PACKAGE / room).rglob("*.py")


def _templates_in(path: Path, expressions: object) -> Iterator[Template]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        for expression in expressions(node):  # type: ignore[operator]
            for parts in _alternatives(expression):
                for line in "".join(parts).split("\n"):
                    if re.search(r"[a-z]{2}", line.replace("\0", "")) and not _CODE.fullmatch(line):
                        places = count(1)
                        yield re.sub("\0", lambda _, places=places: f"{{{next(places)}}}", line.strip())  # type: ignore[misc]


def _counted() -> Iterator[tuple[str, ...]]:
    for path in _entrypoints():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "counted":
                noun = ast.literal_eval(node.args[1])
                yield noun, f"{noun}s"


def _in_displays(node: ast.AST) -> list[ast.expr]:
    """The texts of a notebook's display, the names of its columns, and the headings of a command's table."""
    match node:
        case ast.Call(func=ast.Name(id="show_table"), args=[ast.Tuple(elts=names), *_]):
            return names
        case ast.Assign(targets=[ast.Name(id="_HEADINGS")], value=ast.Tuple(elts=names)):
            return names
        case ast.Call(
            func=ast.Name(id="figures" | "Fact" | "bars" | "ranked" | "table" | "links" | "remark"), args=args
        ):
            return [each for arg in args for each in (arg.elts if isinstance(arg, ast.List) else [arg])]
        case ast.Assign(targets=[ast.Name(id="columns")], value=ast.List(elts=names)):
            return names
    return []


def _in_calls(node: ast.AST) -> list[ast.expr]:
    """The arguments of these functions; the demo is told by which of them it says its results."""
    match node:
        case ast.Call(func=ast.Name(id=name), args=[text, *_]) if name in _TOLD:
            return [text]
        case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr="say"), args=[text]):
            return [text]
    return []


def _in_tasks(node: ast.AST) -> list[ast.expr]:
    """The names of tasks whose progress is shown, and of their units."""
    begun = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "begin"
    return [node.args[0], node.args[2]] if begun and len(node.args) == 3 else []  # type: ignore[attr-defined]


def _in_rejections(node: ast.AST) -> list[ast.expr]:
    name = getattr(node.func, "id", "") if isinstance(node, ast.Call) else ""
    return node.args[1:2] if name in {"invalid", "InvalidField"} else []  # type: ignore[attr-defined]


def _in_errors(node: ast.AST) -> list[ast.expr]:
    """The sentence of an error that is raised, or returned to be raised."""
    match node:
        case ast.Raise(exc=ast.Call(func=ast.Name(id=name), args=[text, *_])):
            return [text] if name[:1].isupper() and name != "ValueError" else []
        case (
            ast.Raise(exc=ast.Call(func=ast.Attribute(value=ast.Name(id="click")), args=[text, *_]))
            | ast.Expr(value=ast.Call(func=ast.Attribute(attr="fail"), args=[text, *_]))
        ):
            return [text]
        case ast.Return(value=ast.Call(func=ast.Name(id=name), args=[text, *_])) if name in _ERRORS:
            return [text]
    return []


def _alternatives(expression: ast.expr) -> list[tuple[str, ...]]:
    """The fixed parts of a text, with a NUL for each value; a choice gives several."""
    match expression:
        case ast.Constant(value=str(text)):
            return [(text,)]
        case ast.JoinedStr(values=values):
            parts = [("\0",) if isinstance(each, ast.FormattedValue) else (each.value,) for each in values]  # type: ignore[attr-defined]
            return [tuple(part for (part,) in parts)]
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return [(*one, *other) for one, other in product(_alternatives(left), _alternatives(right))]
        case ast.BinOp(left=left, op=ast.Mult()):
            return [*_alternatives(left), ()]
        case ast.IfExp(body=body, orelse=orelse):
            return [*_alternatives(body), *_alternatives(orelse)]
    return [("\0",)]


def _of_tables() -> Iterator[str]:
    for name, table in vars(wording).items():
        if isinstance(table, dict) and table is not CODES and not name.startswith("__"):
            yield from (text for text in table.values() if isinstance(text, str) and not text.startswith("#"))
    yield from (*wording.GLOSSARY, *columns.COLUMNS)
    for each in (lists.SALES, lists.MISSING, lists.FINDINGS, lists.PROBLEMS, *lists.BESIDE.values()):
        yield from (each.title, each.about if isinstance(each.about, str) else "")
    yield TITLE
    for table in (
        WARNINGS,
        QUALITY_TEXTS,
        notices.SENTENCES,
    ):
        yield from table.values()
    for worded in (Failure, Repair, Likeness, LeftOutReason):
        yield from (each.text for each in worded)


def _of_codes() -> Iterator[str]:
    for code in CODES.values():
        yield from (code.name, code.meaning, code.remedy)


_COMPOSED = (
    "There is no sale with the id {1}.",
    "The sale has too many valid upload credentials of this type; use those, or wait.",
    "embedded PostgreSQL",
    "{1} (embedded bucket)",
    "{1} is not a valid UUID.",
    "there is no code {1}. Did you mean {2}?",
    "there is no code {1}. toolkit explain lists all of them.",
    "is needed with {1}: say why.",
    "must be a name",
    "write HEADING=field, for example --map 'Nr. contrato=numberOnDealership'",
    "one object of several records",
    "SHA-256 of the content {1}",
    "{1} and {2}, SHA-256 {3}",
    "requested for {1}",
    "declared {1}, is {2}",
    "declared {1}, stored as {2}",
    "{1} objects",
    "{1} objects, of which the first {2} are named",
    "The database at {1} does not answer. Check DATABASE_URL and that the server is up.",
    "The database at {1} does not answer ({2}). Check DATABASE_URL and that the server is up.",
    "The database at {1} does not answer. Run: toolkit status",
    "The database at {1} does not answer ({2}). Run: toolkit status",
    "The {1} does not answer. Check the AWS_* variables and that the server is up.",
    "The {1} does not answer. Run: toolkit status",
    "The {1} does not exist; check {2}, or create it.",
    "The {1} refused the signature; check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE.",
    "The {1} does not know the access key; check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE.",
    "The {1} denied access: the credentials are wrong, or lack {2}.",
    "Check DATABASE_URL.",
    "The {1} says that the AWS session has ended; sign in again.",
    "The {1} refused the session token; check AWS_SESSION_TOKEN.",
    "The {1} has another time than this machine; set the clock.",
    "The {1} is in another region; set AWS_REGION.",
    "reason is required",
    "owner is required",
    "approvedBy is required",
    "end is required: a date written YYYY-MM-DD, the day on which the finding is back",
    "start must be a date written YYYY-MM-DD",
    "end must come after start",
    "end must lie in the future: the waiver would hold on no day",
    "a waiver holds for at most {1} days",
    "a waiver needs a sale, a partner or a code",
    "approvedBy must be somebody else than the owner",
    "{1} is the code of no finding (did you mean {2}?)",
    "{1} is the code of no finding (toolkit explain lists all codes)",
    "{1} is no field of a waiver",
    fields.NOT_MISLEADING,
)
"""Sentences that are composed where no call shows it: parts of errors, and the details of findings about files."""


def _of_loops() -> Iterator[str]:
    """Return the messages that are translated in loops over names."""
    yield from ("new", "back again", "resolved", "unknown", "database", "bucket")
    yield from (*Status, *FindingStatus, *Severity, *Owner, "changed")
    yield from ("holds", "later", "ended")
    yield from (f"a {subject}" for subject in Subject)
    yield from (
        "Found on line {1}: {2}",
        "No heading on line {1} is known",
        "{1} holds the first and the last name together, and where one ends is not guessed: write them into two "
        "columns, nome and sobrenome. {2}",
        "Rename the headings, or say what they mean: --map HEADING=field.",
        "{1}: text, {2}, separated by {3}, headings on line {4}: {5}",
        "{1}: text, {2}, separated by {3}, headings on line {4}: {5}; not used: {6}",
    )
    yield from (*_CLICK_TEXTS, *runs.RunStatus, *_COMPOSED, audited._NO_SALES)
    yield from (fields.REQUIRED, fields._WANTED_INSTALLATION)
    yield from (loads._THERE, f"{loads._THERE}, clientId {{1}}", UNCLOSED, TOO_MANY)
    yield from (checks._IS_ERROR, checks._IS_TOTAL)
    yield "Repeats what may stand only once in the service ({1})"
    yield "Breaks a rule of the service ({1})"
    yield from (warning.text.partition(" ")[2] for warning in QualityWarning)  # behind the name of its field
    yield from ("source", "accepted", "rejected", "skipped", "reasons", "repairs", "warnings")
    yield from (*_HELP_TEXTS, "No progress bars.", *(summary for _, summary in cli._COMMANDS.values()))
    yield from _helps(cli._toolkit)
    yield from (*sale_case._PAYERS.values(), *explain._TITLES.values())


def _helps(command: click.Command) -> Iterator[str]:
    """Return the texts of a command's help, and of all below it."""
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        yield from (each.strip("\b\n") for each in pieces(paragraph) if not _EXAMPLES.fullmatch(each))
    for each in command.params:
        yield getattr(each, "help", None) or ""
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            own = command.get_command(click.Context(command), name)
            assert own is not None
            if command is not cli._toolkit:
                yield own.get_short_help_str(200)
            yield from _helps(own)
