"""``toolkit up``, ``down`` and ``status``: the services that the toolkit stands on."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import click

from toolkit import embedded
from toolkit.cli.context import DONE, NEEDS_ATTENTION, json_option, pass_kit
from toolkit.cli.printing import print_json, show
from toolkit.contract.fields import pick_camel
from toolkit.kit.health import ServiceHealth, service_health
from toolkit.kit.spoken import _, current_language, readable
from toolkit.message import Message

if TYPE_CHECKING:
    from toolkit.kit.connection import Kit


@click.command()
@pass_kit
def up(kit: Kit) -> None:
    """Start the embedded services and make their schema ready; say where they are.

    Without this command they start at their first use. They are shared by everything that uses
    the same TOOLKIT_HOME, and run on until: toolkit down

    \b
    Example:
      toolkit up
      TOOLKIT_HOME=/srv/trial toolkit up
    """
    if kit.settings.database_url is None:
        kit.database  # noqa: B018  # opened by being asked for
    if kit.settings.evidence_bucket is None:
        kit.bucket  # noqa: B018  # opened here
    _show(kit, service_health(kit.settings))


@click.command()
@pass_kit
def down(kit: Kit) -> None:
    """Stop the embedded services; their data stay. Shared services are left alone.

    \b
    Example:
      toolkit down
    """
    stopped = embedded.stop(kit.settings.home)
    if stopped:
        show("stopped: {}", current_language().listed(stopped))
    else:
        show("nothing runs in {}", kit.settings.home)


@click.command()
@json_option
@pass_kit
def status(kit: Kit, as_json: bool) -> int:
    """Say what runs where: versions, addresses, data, and whether the schema fits. Starts nothing.

    Exit status 3: one of them cannot be used as it is.

    \b
    Example:
      toolkit status
      toolkit status --json
    """
    found = service_health(kit.settings)
    if as_json:
        document: dict[str, Any] = {"home": kit.settings.home}
        for health in found:
            facts = (each.name for each in fields(health) if each.name != "service")
            document[health.service] = pick_camel(health, *facts)
        print_json(document)
    else:
        _show(kit, found)
    return NEEDS_ATTENTION if any(health.problem for health in found) else DONE


def _show(kit: Kit, found: Sequence[ServiceHealth]) -> None:
    show("{:<9} {}", _("home"), kit.settings.home)
    for health in found:
        show("{:<9} {}", _(health.service), _summary(health))
        for label, value in _details(health, kit.settings.timezone):
            show("{:<9} {:<7} {}", "", _(label), value)


def _summary(health: ServiceHealth) -> Message:
    product = f"{health.name} {health.version}" if health.version else health.name
    answer = Message("answers" if health.answers else "does not answer")
    if not health.embedded:
        return Message("shared {}, {}", product, answer)
    if health.pid is not None:
        return Message("embedded {}, process {}, {}", product, health.pid, answer)
    if health.problem is None:
        return Message("embedded {}, does not run; it starts at its first use", product)
    return Message("embedded {}, does not run", product)


def _details(health: ServiceHealth, zone: ZoneInfo) -> Iterator[tuple[str, object]]:
    if health.address:
        yield "at", health.address
    for name, path in (("data", health.data), ("log", health.log)):
        if path is not None and os.path.exists(path):  # noqa: PTH110  # which tells nothing of what may not be read
            yield name, path
    if health.schema == health.newest_schema is not None:
        yield "schema", Message("{} (the newest)", health.schema)
    elif health.schema is not None:
        yield "schema", Message("{} (needed: {})", health.schema, health.newest_schema)
    if health.epoch_since is not None:
        since = readable(health.epoch_since, zone)
        restored = Message("{}, since {}: restored from another cluster", health.epoch, since)
        yield "epoch", restored if health.epoch != 1 else health.epoch
    if health.replica is not None:
        yield "replica", health.replica
    if health.problem is not None:
        yield "problem", health.problem
