"""``toolkit up``, ``down``, ``status`` and ``db``: the services that the toolkit stands on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

from toolkit.faces.cli.context import DONE, NEEDS_ATTENTION, Context, pass_context, print_json
from toolkit.faces.conditions import Condition, conditions
from toolkit.storage import embedded, schema
from toolkit.storage.database import Database

_INDENT = 10


@click.command()
@pass_context
def up(ctx: Context) -> int:
    """Start the embedded services and make their schema ready; say where they are.

    Nobody has to: they start at their first use. They are shared by everything that uses the same
    TOOLKIT_HOME, and run on until: toolkit down

    \b
    Example:
      toolkit up
      TOOLKIT_HOME=/srv/trial toolkit up
    """
    if ctx.settings.database_url is None:
        _ = ctx.workspace.database
    if ctx.settings.evidence_bucket is None:
        _ = ctx.workspace.bucket
    _show(ctx, conditions(ctx.settings))
    return DONE


@click.command()
@pass_context
def down(ctx: Context) -> int:
    """Stop the embedded services; their data stay. Shared services are left alone.

    \b
    Example:
      toolkit down
    """
    stopped = embedded.stop(ctx.settings.home)
    click.echo(f"stopped: {' and '.join(stopped)}" if stopped else f"nothing runs in {ctx.settings.home}")
    return DONE


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@pass_context
def status(ctx: Context, as_json: bool) -> int:
    """Say what runs where: versions, addresses, data, and whether the schema fits. Starts nothing.

    Exit status 3: one of them cannot be used as it is.

    \b
    Example:
      toolkit status
      toolkit status --json
    """
    found = conditions(ctx.settings)
    if as_json:
        document: dict[str, Any] = {"home": ctx.settings.home}
        print_json(document | {condition.service: _as_json(condition) for condition in found})
    else:
        _show(ctx, found)
    return NEEDS_ATTENTION if any(condition.problem for condition in found) else DONE


@click.group()
def db() -> None:
    """The schema of the database.

    \b
    Examples:
      toolkit db upgrade
      toolkit db upgrade --help
    """


@db.command()
@click.option("--service-tables", is_flag=True, help="Also create the service's tables, where there are none.")
@pass_context
def upgrade(ctx: Context, service_tables: bool) -> int:
    """Bring the toolkit's schema to this version, all or nothing.

    The tables of the sales service (clients, addresses, sales, evidences) are never altered. Where there are
    none yet, --service-tables creates them; in the embedded database that is always done.

    \b
    Example:
      toolkit db upgrade
      DATABASE_URL=postgresql://toolkit@db.example/sales toolkit db upgrade --service-tables
    """
    url = ctx.settings.database_url
    database = Database(url or embedded.database_url(ctx.settings.home), embedded=url is None)
    try:
        schema.upgrade(database, service_tables=service_tables or database.embedded)
    finally:
        database.dispose()
    click.echo(f"{database.address}: schema {schema.newest_revision()}")
    return DONE


def _show(ctx: Context, found: Sequence[Condition]) -> None:
    _line("home", str(ctx.settings.home))
    for condition in found:
        _line(condition.service, _summary(condition))
        for label, value in _details(condition):
            _line("", f"{label:<8}{value}")


def _line(heading: str, text: str) -> None:
    click.echo(f"{heading:<{_INDENT}}{text}")


def _summary(condition: Condition) -> str:
    kind = "embedded" if condition.embedded else "shared"
    product = f"{condition.name} {condition.version}" if condition.version else condition.name
    return f"{kind} {product}, {_state(condition)}"


def _state(condition: Condition) -> str:
    answer = "answers" if condition.answers else "does not answer"
    if not condition.embedded:
        return answer
    if condition.pid is None:
        return "does not run" + ("; it starts at its first use" if condition.problem is None else "")
    return f"process {condition.pid}, {answer}"


def _details(condition: Condition) -> list[tuple[str, str]]:
    details = [("at", condition.address)] if condition.address else []
    if condition.data is not None and condition.data_bytes:
        details.append(("data", f"{condition.data} ({_size(condition.data_bytes)})"))
    if condition.log is not None and (condition.pid or condition.data_bytes):
        details.append(("log", str(condition.log)))
    if condition.schema is not None:
        fits = (
            "the newest" if condition.schema == condition.newest_schema else f"needed: {condition.newest_schema}"
        )
        details.append(("schema", f"{condition.schema} ({fits})"))
    if condition.problem is not None:
        details.append(("problem", condition.problem))
    return details


def _size(count: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


def _as_json(condition: Condition) -> dict[str, Any]:
    names = {"data_bytes": "dataBytes", "newest_schema": "newestSchema"}
    return {names.get(name, name): value for name, value in asdict(condition).items() if name != "service"}
