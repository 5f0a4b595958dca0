"""``toolkit up``, ``down`` and ``status``: the services that the toolkit stands on."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any
from zoneinfo import ZoneInfo

import click

from toolkit import embedded
from toolkit.cli.context import DONE, NEEDS_ATTENTION, Context, pass_context
from toolkit.cli.printing import json_option, print_json
from toolkit.contract.fields import named
from toolkit.kit.health import ServiceHealth, service_health


@click.command()
@pass_context
def up(ctx: Context) -> None:
    """Start the embedded services and make their schema ready; say where they are.

    Without this command they start at their first use. They are shared by everything that uses
    the same TOOLKIT_HOME, and run on until: toolkit down

    \b
    Example:
      toolkit up
      TOOLKIT_HOME=/srv/trial toolkit up
    """
    if ctx.settings.database_url is None:
        _ = ctx.application.database
    if ctx.settings.evidence_bucket is None:
        _ = ctx.application.bucket
    _show(ctx, service_health(ctx.settings))


@click.command()
@pass_context
def down(ctx: Context) -> None:
    """Stop the embedded services; their data stay. Shared services are left alone.

    \b
    Example:
      toolkit down
    """
    stopped = embedded.stop(ctx.settings.home)
    click.echo(f"stopped: {' and '.join(stopped)}" if stopped else f"nothing runs in {ctx.settings.home}")


@click.command()
@json_option
@pass_context
def status(ctx: Context, as_json: bool) -> int:
    """Say what runs where: versions, addresses, data, and whether the schema fits. Starts nothing.

    Exit status 3: one of them cannot be used as it is.

    \b
    Example:
      toolkit status
      toolkit status --json
    """
    found = service_health(ctx.settings)
    if as_json:
        document: dict[str, Any] = {"home": ctx.settings.home}
        for health in found:
            facts = (each.name for each in fields(health) if each.name != "service")
            document[health.service] = named(health, *facts)
        print_json(document)
    else:
        _show(ctx, found)
    return NEEDS_ATTENTION if any(health.problem for health in found) else DONE


def _show(ctx: Context, found: Sequence[ServiceHealth]) -> None:
    lines = [("home", str(ctx.settings.home))]
    for health in found:
        lines.append((health.service, _summary(health)))
        lines += [("", f"{label:<8}{value}") for label, value in _details(health, ctx.settings.timezone)]
    for heading, text in lines:
        click.echo(f"{heading:<10}{text}")


def _summary(health: ServiceHealth) -> str:
    kind = "embedded" if health.embedded else "shared"
    product = f"{health.name} {health.version}" if health.version else health.name
    return f"{kind} {product}, {_state(health)}"


def _state(health: ServiceHealth) -> str:
    answer = "answers" if health.answers else "does not answer"
    if not health.embedded:
        return answer
    if health.pid is None:
        return "does not run" + ("; it starts at its first use" if health.problem is None else "")
    return f"process {health.pid}, {answer}"


def _details(health: ServiceHealth, zone: ZoneInfo) -> list[tuple[str, str]]:
    details = [("at", health.address)] if health.address else []
    if health.data is not None and health.data_bytes:
        details.append(("data", f"{health.data} ({_size(health.data_bytes)})"))
    if health.log is not None and (health.pid or health.data_bytes):
        details.append(("log", str(health.log)))
    if health.schema is not None:
        fits = "the newest" if health.schema == health.newest_schema else f"needed: {health.newest_schema}"
        details.append(("schema", f"{health.schema} ({fits})"))
    if health.epoch_since is not None:
        since = health.epoch_since.astimezone(zone).isoformat(timespec="seconds")
        restored = f", since {since}: restored from another cluster"
        details.append(("epoch", f"{health.epoch}{restored if health.epoch != 1 else ''}"))
    if health.replica is not None:
        details.append(("replica", health.replica))
    if health.problem is not None:
        details.append(("problem", health.problem))
    return details


def _size(count: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"
