"""The command ``toolkit``: options, one call of an operation, an exit status.

Results go to stdout, progress and notes to stderr. Exit status: 0 done (also of a command that returns nothing);
1 could not do it; 2 wrong usage; 3 done, and something needs attention.
"""

import importlib
import re
from collections.abc import Iterator, Mapping, Sequence
from inspect import cleandoc
from typing import Final

import click

from toolkit.cli.context import DONE, FAILED, WRONG_USAGE, Help, note
from toolkit.errors import INTERRUPTED, SettingsError, ToolkitError
from toolkit.extras import Extra, require
from toolkit.kit.process import files_for_owner_and_group
from toolkit.kit.spoken import format_error, set_language
from toolkit.message import Message, recognised

_COMMANDS: Final = {
    "up": ("database", "Start the embedded services and make their schema ready."),
    "down": ("database", "Stop the embedded services; their data stay."),
    "status": ("database", "Show the services, their addresses, and whether the schema fits."),
    "db": ("database", "Upgrade the schema, and map the service's own tables."),
    "clients": ("intake", "Register clients from spreadsheets."),
    "sales": ("intake", "Take over sales, and complete them when their evidence allows it."),
    "sale": ("intake", "Show everything about one sale: rule, files, findings and time line."),
    "dossier": ("intake", "Write everything about one sale into a ZIP for others."),
    "credentials": ("evidence", "Ask for upload credentials: a record, and a form to post its file."),
    "evidence": ("evidence", "Upload, verify, list and withdraw evidence."),
    "bucket": ("evidence", "Take over what lies in the bucket."),
    "audit": ("audit", "Judge every sale by its evidence, and show the totals."),
    "report": ("audit", "Judge every sale, and write the report of those that lack evidence."),
    "log": ("log", "Seal the custody log, and prove to strangers what is in it."),
    "verify": ("audit", "Tell whether a report, an audit or an exported custody log is what was written."),
    "findings": ("audit", "List every finding with its status, dates, deadline and owner."),
    "changes": ("audit", "Say which findings are new, resolved, reopened or still open between two moments."),
    "waiver": ("waivers", "Accept findings for a time: add, list, revoke and check waivers."),
    "partner": ("partner", "Tell partners what they have to mend, and list what they answered."),
    "review": ("review", "Have people look at files: draw, hand out, and keep what they found."),
    "privacy": ("privacy", "Answer persons: what is known of them, a copy, erasure, holds and requests."),
    "explain": ("explain", "Say what a code means, and what to do about it."),
    "run": ("notebooks", "Execute a notebook with parameters."),
    "notebooks": ("notebooks", "List the notebooks that come with the toolkit, or copy them."),
    "job": ("jobs", "Run jobs for a scheduler, each logical date once, and tell what was missed."),
    "serve": ("access", "Answer partners over HTTP, as the contract says."),
    "token": ("access", "Issue and revoke bearer tokens for the HTTP interface."),
    "sample": ("samples", "Write a folder of made-up files."),
    "demo": ("samples", "Do the whole job on made-up data, step by step."),
}
"""Each command, the module of this package that holds it, and its line in ``--help``, the help of most groups."""

_EXTRAS: Final[dict[Extra, tuple[frozenset[str], str]]] = {
    "serve": (frozenset(("serve", "token")), "The HTTP interface and its tokens"),
    "audit": (
        frozenset("audit report verify findings changes sale dossier evidence bucket".split())  # noqa: SIM905
        | {"waiver", "partner", "review", "job", "sample", "demo", "log", "privacy"},
        "Audits and reports",
    ),
    "notebooks": (frozenset(("run", "notebooks", "job", "partner", "demo")), "Notebooks and jobs"),
}
"""The commands that need an extra, and what is named to those who lack it."""

click.Context.formatter_class = Help


class _Commands(click.Group):
    """Loads a command's module when it is called, so that ``toolkit --help`` does not wait for pandas."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        return list(_COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in _COMMANDS.items()])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            if ctx.resilient_parsing or cmd_name.startswith("-"):
                return None
            raise click.exceptions.NoSuchCommand(cmd_name, possibilities=list(_COMMANDS), ctx=ctx)
        for extra, (commands, purpose) in _EXTRAS.items():
            if cmd_name in commands:
                require(extra, purpose)
        module_name, summary = _COMMANDS[cmd_name]
        module = importlib.import_module(f"{__name__}.{module_name}")
        command: click.Command = getattr(module, cmd_name)
        if isinstance(command, click.Group) and "Example" not in (command.help or ""):
            about = cleandoc(command.help or summary)
            command.help = "\n  ".join([f"{about}\n\nExamples:", *_first_examples(command)])
        return command


def _first_examples(group: click.Group) -> Iterator[str]:
    """Yield the first example of each command of a group."""
    for name, command in group.commands.items():
        if example := re.search(rf"toolkit {group.name} {name}(?:.*\\\n)*.*", cleandoc(command.help or "")):
            yield example[0]


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option("--quiet", "-q", is_flag=True, help="No progress bars.")
@click.version_option(package_name="evidence-toolkit", message="%(version)s")
@click.pass_context
def _toolkit(ctx: click.Context, quiet: bool) -> None:  # noqa: ARG001  # pass_kit reads it
    """Find the sales that lack the evidence that the contract demands, and say why.

    Without configuration everything runs on an embedded PostgreSQL and an embedded bucket
    that start by themselves. The shared ones: DATABASE_URL, EVIDENCE_BUCKET and AWS_*.

    A first walk:
      toolkit demo --out reports          sample data through the whole job
      toolkit clients load clients.csv    register clients; what is wrong comes back as a file
      toolkit sales load sales.csv        take over the sales
      toolkit audit                       what every sale has and lacks
      toolkit report --out reports        the same for people: HTML, XLSX, CSV

    Exit status: 0 done; 1 could not do it; 2 wrong usage; 3 done, something needs attention.
    """
    ctx.with_resource(files_for_owner_and_group(ctx.obj))


OF_CLICK: Final = (
    "Missing argument {}.",
    "Missing option {}.",
    "Invalid value: {}",
    "Invalid value for {}: {}",
    "No such option {}. Did you mean {}?",
    "No such option {}. (Did you mean one of: {}?)",
    "No such option {}.",
    "No such command {}. Did you mean {}?",
    "No such command {}. (Did you mean one of: {}?)",
    "No such command {}.",
    "Option {} requires an argument.",
    "Option {} does not take a value.",
    "Got unexpected extra argument ({})",
    "Got unexpected extra arguments ({})",
    "{} is not one of {}.",
    "{} is not a valid integer.",
    "{} is not a valid integer range.",
    "{} is not a valid float range.",
    "{} is not a valid UUID.",
    "{} is not in the range {}.",
    "Directory {} does not exist.",
    "Directory {} is a file.",
)
"""Sentences of click about a wrong usage."""


def _note_usage(error: click.ClickException) -> None:
    """Note what click shows of an error, in the reader's language."""
    said, context = error.format_message(), getattr(error, "ctx", None)
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        note(said)
        return
    if context is not None:
        note(context.get_usage())
        note("Try '{}' for help.\n", f"{context.command_path} --help")
    message, own = recognised(said, OF_CLICK), getattr(error, "message", "")
    if message.values:
        *values, last = message.values
        message = Message(
            message.template, *values, own if isinstance(own, Message) else recognised(last, OF_CLICK)
        )
    note("Error: {}", message)


def main(args: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run one command and return its exit status; never raises for a mistake of the user."""
    set_language(environ)
    try:
        status = _toolkit.main(args=list(args), prog_name="toolkit", standalone_mode=False, obj=environ)
    except click.ClickException as error:
        _note_usage(error)
        return WRONG_USAGE if isinstance(error, click.UsageError) else FAILED
    except ToolkitError as error:
        note("toolkit: {}", format_error(error))
        return WRONG_USAGE if isinstance(error, SettingsError) else FAILED
    except OSError as error:
        template = "{}: {}" if error.filename else "{}"
        note("toolkit: {}", Message(template, error.strerror or str(error), error.filename2 or error.filename))
        return FAILED
    except Exception as error:  # click makes one of its own of Ctrl-C, as DuckDB does
        if isinstance(error, MemoryError) or "start new thread" in str(error):
            note("toolkit: this process may not take more memory or threads; see its limits by: ulimit -a")
            return FAILED
        if not isinstance(error, click.Abort) and not INTERRUPTED.search(str(error)):
            raise
        if isinstance(error.__cause__, EOFError):  # nobody's Ctrl-D: that one has no cause
            note(
                "toolkit: a file is cut off, as by a full disk: {}. Make room and install again.",
                error.__cause__,
            )
            return FAILED
        note("toolkit: interrupted")
        return 130
    return status if isinstance(status, int) else DONE
