"""The messages that translators translate, and the English in what a Portuguese console says."""

import ast
import inspect
import re
from functools import cache
from itertools import product
from pathlib import Path

import click
import nbformat
from babel.messages.extract import extract_from_dir

import toolkit
from toolkit import cli, errors
from toolkit.bucket.errors import REFUSALS
from toolkit.cli.context import pieces
from toolkit.contract.codes import CODES, Owner, Severity
from toolkit.contract.fields import _BOUNDS, NOT_MISLEADING
from toolkit.contract.findings import FindingStatus, Status
from toolkit.contract.privacy import AnswerOutcome
from toolkit.contract.scorecards import read_scorecard
from toolkit.contract.service_rows import SENTENCES as OF_ROWS
from toolkit.contract.service_rows import ServiceChange
from toolkit.database.errors import SENTENCES
from toolkit.database.service import WRITES
from toolkit.evidence.contents import Failure
from toolkit.http.tokens import MAKE_A_SECRET
from toolkit.intake import checks, workbooks
from toolkit.intake.tables import IS_ROUNDED, NOT_TEXT, TOO_MANY, UNCLOSED
from toolkit.jobs import notices, partner_notices, runs
from toolkit.kit import desk, dossier, sales
from toolkit.language import ENGLISH, OF_SYSTEM, language
from toolkit.message import LabelledEnum
from toolkit.notebooks.packaged import packaged_notebooks
from toolkit.notebooks.parameters import read_parameters
from toolkit.partner import posting
from toolkit.reports import FileState, lists, page, report, wording

PACKAGE = Path(toolkit.__file__).parent

_ERRORS = {name for name, each in vars(errors).items() if isinstance(each, type) and issubclass(each, Exception)}

_SAYS = {
    **dict.fromkeys(("show", "note", "_", "Message", "say", "fail", "refused", "invalid", *_ERRORS), (0,)),
    **dict.fromkeys(("UsageError", "BadParameter"), (0,)),
    **dict.fromkeys(("InvalidField", "NotSent", "counted"), (1,)),
    "begin": (0, 2),
    **dict.fromkeys(("require", "unmask"), (1,)),
    "case_of": (2,),
}
"""The calls that say something to people, and the places of its texts."""

_SHOW = {"kit", "jobs", "cli"}  # the rooms that show results
_DISPLAYS = dict.fromkeys(("figures", "table", "links", "remark", "_why"), range(9))

_OF_SETTINGS = dict.fromkeys(("SettingsError", "ToolkitError"), (0,))
"""What the HTTP interface says to those who start it; all else it says to programs."""

_TABLES = {"_OF_SALES", "_HEADINGS", "columns"}
"""Variables that hold the headings of a table."""

_CODE = re.compile(r"[a-z]+[A-Z_]\w*|[^a-z]*[a-z]?[^a-z]*|[ {}]*")
"""The name of a column of the contract, or no word."""

_OF_REPORTS = {"text": None, "_": None, "count": (1, 2), "ngettext": (1, 2)}
_METHODS = [("**.py", "python"), ("templates/**.j2", "jinja2")]

_EXAMPLES = re.compile(r" +\S+( \S+)*(\n +\S+( \S+)*)*")
"""Commands without a word about them."""

_OF_HELP = ("required", "default", "Options", "Commands", "Show this message and exit.")
"""What click writes in every help."""


def messages():
    """Every message: those that stand in calls, the names and sentences of tables, and what codes are called."""
    called = extract_from_dir(str(PACKAGE / "reports"), _METHODS, keywords=_OF_REPORTS)
    of_helps = (*_OF_HELP, *(summary for _, summary in cli._COMMANDS.values()), *_helps(cli._toolkit))
    found = {message for _, _, message, _, _ in called}.union(_of_calls(), _of_tables(), of_helps)
    return found - {""} - {each[0] for each in found if isinstance(each, tuple)}  # gettext has these, too


def _of_calls():
    for path in PACKAGE.rglob("*.py"):
        room = path.relative_to(PACKAGE).parts[0]
        says = _OF_SETTINGS if room == "http" else _SAYS | (_DISPLAYS if room in _SHOW else {})
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=args):
                    said = [args[at] for at in says.get(name, ()) if at < len(args)]
                case ast.Raise(exc=ast.Name(id=name)) if name in _ERRORS:  # its text is that of its class
                    said = [ast.Constant(inspect.getdoc(getattr(errors, name)))]
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in _TABLES:
                    said = [value]
                case (
                    ast.Assign(targets=[ast.Name(id="facts" as name)], value=ast.Dict(keys=labels))
                    | ast.AugAssign(target=ast.Name(id="facts" as name), value=ast.Dict(keys=labels))
                ) if room in _SHOW:
                    said = [label for label in labels if label is not None]
                case _:
                    continue
            for each in said:
                for text in map(str.strip, _texts(each)):
                    if not _CODE.fullmatch(text):
                        yield text if name != "counted" else (text, f"{text}s")


def _texts(expression):
    """Return the texts that an expression can have; those of a list are several, too."""
    match expression:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return ["".join(both) for both in product(_texts(left), _texts(right))]
        case ast.IfExp(body=body, orelse=orelse):
            return [*_texts(body), *_texts(orelse)]
        case ast.List(elts=elts) | ast.Tuple(elts=elts):
            return [text for each in elts for text in _texts(each)]
    return []


def _of_tables():
    for name, table in vars(wording).items():
        if isinstance(table, dict) and table is not CODES and not name.startswith("__"):
            yield from (text for text in table.values() if isinstance(text, str) and not text.startswith("#"))
    of_sales = (lists.SALES, lists.MISSING, lists.FINDINGS, lists.PROBLEMS, lists.ANSWERS)
    for each in (*of_sales, *lists.BESIDE.values()):
        yield from (each.title, each.about if type(each.about) is str else "", *each.columns)
    yield from wording.script_words(page.asset(*page.SCRIPTS), ENGLISH)
    yield from (*wording.GLOSSARY, report.TITLE, *report.DETAILS, *dossier.ABOUT)
    of_rooms = (OF_ROWS, SENTENCES, REFUSALS, workbooks.REFUSALS, posting.HINTS)
    for table in (*of_rooms, notices.SENTENCES, partner_notices.SENTENCES, desk.MARKS, sales.PAYERS):
        yield from table.values()
    for labelled in {*LabelledEnum.__subclasses__(), Failure} - {runs.Outcome}:  # outcomes stand in logs
        yield from (each.text for each in labelled)
    for code in CODES.values():
        yield from (code.name, code.meaning, code.remedy)
    yield from (*AnswerOutcome, *ServiceChange, *Status, *FindingStatus, *Severity, *Owner, *runs.RunStatus)
    yield from (NOT_MISLEADING, UNCLOSED, TOO_MANY, NOT_TEXT, IS_ROUNDED)
    yield from (posting.NOT_TRUSTED, checks.IS_ERROR, checks.IS_TOTAL)
    yield from (*cli.OF_CLICK, *(purpose for _, purpose in cli._EXTRAS.values()))
    yield from (impossible for _, impossible in WRITES.values())
    # Said in loops over names.
    yield from ("back again", "changed", "not known", "FAILED", "later", "ended", "holds", "released", "revoked")
    yield from ("inclusion", "time", "witness", "at", "schema", "replica", "database", "bucket")
    yield from ("contact", "purpose", "legal basis", "sharing", "security", "remarks")
    of_many = ("new", "open", "waived", "resolved", "came and went", "done", "failed", "missed", "kept")
    yield from ((each, each) for each in of_many)
    # Read from tables and files.
    yield from ("{} (embedded bucket)", "one object of several records", "not in the contract")
    yield from (*OF_SYSTEM, *_BOUNDS.values())
    yield from (question.text for question in read_scorecard(None).question)
    for each in packaged_notebooks().values():
        yield from (parameter.comment for parameter in read_parameters(nbformat.read(each, as_version=4)).values())
    yield from (*FileState, str(MAKE_A_SECRET))


def _helps(command):
    """Return the texts of a command's help, and of all below it."""
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        yield from (each.strip("\n") for each in pieces(paragraph) if not _EXAMPLES.fullmatch(each))
    for each in command.params:
        yield getattr(each, "help", None) or ""
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            own = command.get_command(click.Context(command), name)
            if command is not cli._toolkit:
                yield own.get_short_help_str(200)
            yield from _helps(own)


_WORD = re.compile(r"[^\W\d_]+")
_OF_NO_LANGUAGE = re.compile(
    r"""^Uso:.*|^\s+toolkit .*|^\s+[a-z][\w-]*(?=\s{2,})|\[[^\]]*\|[^\]]*\]|^\d{4}-\d\d-\d\dT.*|S3 server|"""
    r"""'[^']*'|"[^"]*"|“[^”]*”|`[^`]*`|\S*[\d_/@={}<>\\]\S*|"""
    r"\S*\w[.:]\w\S*|\S*[a-z][A-Z]\S*|--?[a-z][\w-]*|\b[A-Z]{2,}\b|\.\S+|\btoolkit(?: [a-z-]+)+"
)
"""Values in quotation marks, codes, paths, addresses, options, names of fields and commands, lines of the log."""


def english_in(said):
    """The lines of a text that hold such words, with the words."""
    found = {}
    for section in {each.section for each in CODES.values()} - {"not in the contract"}:
        said = said.replace(section, "")  # the contract is English
    for line in said.splitlines():
        words = _WORD.findall(_OF_NO_LANGUAGE.sub(" ", line))
        if english := [word for word in words if word.lower() in _english()]:
            found[line.strip()] = english
    return found


@cache
def _english():
    portuguese = language("pt-BR")
    texts = {text for message in messages() for text in ([message] if isinstance(message, str) else message)}
    return _words(texts) - _words(map(portuguese.text, texts)) - _NAMES


def _words(texts):
    return {word.lower() for text in texts for word in _WORD.findall(text)}


_NAMES = {"answer", "contact", "fields", "formats", "purpose", "readable", "sharing"}
"""Names of settings, fields, parameters and questions, which are words, too."""
