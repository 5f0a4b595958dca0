"""``toolkit up``, ``down`` and ``status``: the services that the toolkit stands on."""

from typing import Any

import click

from toolkit import embedded
from toolkit.cli.context import finish, pass_kit, shows
from toolkit.cli.printing import show
from toolkit.kit.connection import Kit
from toolkit.kit.health import service_health
from toolkit.kit.shown import Shown
from toolkit.kit.spoken import current_language


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
    finish(service_health(kit.settings))


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
@shows()
def status(kit: Kit) -> Shown[Any]:
    """Say what runs where: versions, addresses, data, and whether the schema fits. Starts nothing.

    Exit status 3: one of them cannot be used as it is.

    \b
    Example:
      toolkit status
      toolkit status --json
    """
    return service_health(kit.settings)
