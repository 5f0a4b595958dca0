"""Run commands as steps of a job: arguments from parameters, and a call in this process."""

import io
import json
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from difflib import get_close_matches
from typing import Any, Final

import click

from toolkit.entrypoints.cli import _toolkit
from toolkit.entrypoints.cli.context import DONE, NEEDS_ATTENTION
from toolkit.entrypoints.jobs.job_log import JobLog, LogStream
from toolkit.errors import JobFailed, SettingsError

_NOT_IN_JOBS: Final = {"job", "up", "down", "run", "serve", "token", "demo", "notebooks"}
"""Commands that do not end, stop shared services, print a secret, or are written as a notebook step."""


class CommandLine:
    """Runs commands of the toolkit for the steps of jobs."""

    def arguments(self, words: tuple[str, ...], parameters: Mapping[str, Any]) -> list[str]:
        """Return the arguments of a command with these parameters.

        Raises:
            SettingsError: there is no such command or parameter, or a value is of another type.
        """
        command = _command(words)
        known = {name: each for each in command.params for name in _names(each)}
        options: list[str] = []
        positional: list[str] = []
        for name, value in parameters.items():
            if name.replace("-", "_") not in known:
                raise SettingsError(_unknown(words, name, known))
            parameter = known[name.replace("-", "_")]
            texts = _texts(name, parameter, value)
            if isinstance(parameter, click.Argument):
                positional += texts
            elif isinstance(parameter, click.Option) and parameter.is_flag:
                options += [parameter.opts[-1]] * bool(value)
            else:
                options += [word for text in texts for word in (max(parameter.opts, key=len), text)]
        if "as_json" in known and "as_json" not in parameters:
            options.append("--json")
        arguments = [*options, "--", *positional] if positional else options
        try:
            command.make_context(words[-1], list(arguments))
        except click.ClickException as error:
            raise SettingsError(f"toolkit {' '.join(words)}: {error.format_message()}") from None
        return [*words, *arguments]

    def run(self, arguments: list[str], environ: Mapping[str, str], log: JobLog) -> Mapping[str, Any]:
        """Run a command, and return the JSON document that it prints, if any.

        Raises:
            JobFailed: it ended with a status that says that it could not do its work.
            ToolkitError, OSError: what stopped it.
        """
        printed = io.StringIO()
        with redirect_stdout(printed), redirect_stderr(LogStream(log.say)):
            try:
                status = _toolkit.main(
                    args=["--quiet", *arguments], prog_name="toolkit", standalone_mode=False, obj=environ
                )
            except click.ClickException as error:
                raise SettingsError(error.format_message()) from None
            except click.Abort:
                raise JobFailed(f"toolkit {arguments[0]} was interrupted.") from None
        if status not in {None, DONE, NEEDS_ATTENTION}:
            raise JobFailed(f"toolkit {arguments[0]} ended with status {status}.")
        try:
            document = json.loads(printed.getvalue())
        except ValueError:
            return {}
        return document if isinstance(document, dict) else {}


def _command(words: tuple[str, ...]) -> click.Command:
    command: click.Command = _toolkit
    context = click.Context(command)
    for number, word in enumerate(words):
        found = command.get_command(context, word) if isinstance(command, click.Group) else None
        if found is None or (number == 0 and word in _NOT_IN_JOBS):
            names = command.list_commands(context) if isinstance(command, click.Group) else []
            near = get_close_matches(word, [name for name in names if name not in _NOT_IN_JOBS], n=1)
            hint = f" Did you mean {' '.join([*words[:number], near[0]])!r}?" if near else ""
            raise SettingsError(f"{' '.join(words)!r} is not a command that a job can run.{hint}")
        command, context = found, click.Context(found, parent=context)
    if isinstance(command, click.Group):
        raise SettingsError(
            f"{' '.join(words)!r} is a group of commands: {', '.join(command.list_commands(context))}"
        )
    return command


def _names(parameter: click.Parameter) -> set[str]:
    names = {option.lstrip("-").replace("-", "_") for option in parameter.opts if option.startswith("--")}
    return {*names, parameter.name or ""}


def _unknown(words: tuple[str, ...], name: str, known: Mapping[str, click.Parameter]) -> str:
    names = sorted({each.replace("_", "-") for parameter in known.values() for each in _shown(parameter)})
    near = get_close_matches(name, names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"toolkit {' '.join(words)} has no parameter {name!r}.{hint} It has: {', '.join(names) or 'none'}"


def _shown(parameter: click.Parameter) -> set[str]:
    if isinstance(parameter, click.Argument):
        return {parameter.name or ""}
    return {option.lstrip("-") for option in parameter.opts if option.startswith("--")}


def _texts(name: str, parameter: click.Parameter, value: Any) -> list[str]:
    """Return the value as words of a command line, one for each item of a list."""
    kinds: tuple[type, ...]
    several = parameter.multiple or parameter.nargs != 1
    if isinstance(parameter, click.Option) and parameter.is_flag:
        wanted, kinds = "true or false", (bool,)
    elif isinstance(parameter.type, (click.types.IntParamType, click.IntRange)):
        wanted, kinds = "a whole number", (int,)
    elif isinstance(parameter.type, (click.types.FloatParamType, click.FloatRange)):
        wanted, kinds = "a number", (int, float)
    else:
        wanted, kinds = "a text", (str,)
    items = value if several and isinstance(value, list) else [value]
    if not all(type(item) in kinds for item in items):
        raise SettingsError(f"{name} must be {wanted}{', or a list of them' if several else ''}.")
    return [str(item) for item in items]
