"""``toolkit db grants``: the rights that a role needs, as SQL."""

import click

from toolkit.entrypoints.cli.context import DONE, Context, pass_context
from toolkit.entrypoints.cli.printing import show
from toolkit.errors import SettingsError
from toolkit.storage.database import Database
from toolkit.storage.grants import As, grants


@click.command("grants", short_help="Print the SQL that gives a role the rights it needs.")
@click.option("--role", required=True, metavar="NAME", help="The role that gets the rights; it has to exist.")
@click.option(
    "--as",
    "purpose",
    type=click.Choice([each.value for each in As]),
    required=True,
    help="Owner, operator or reader, see above.",
)
@pass_context
def grants_command(ctx: Context, role: str, purpose: str) -> int:
    """Print the SQL that gives a role all the rights it needs, and nothing else. Nothing is executed.

    \b
      owner      upgrades the toolkit's schema; used by hand
      operator   the server and nightly jobs: audits, loads, credentials, completion
      reader     looks at audits of past moments, findings and reports

    The operator is not the owner: an owner of schema audit could switch off the triggers that keep
    history. Run the SQL as the owner of the database, and again after each upgrade.

    \b
    Examples:
      toolkit db grants --role toolkit_owner --as owner | psql "$ADMIN_URL"
      toolkit db grants --role toolkit_night --as operator
    """
    if ctx.settings.database_url is None:
        raise SettingsError(
            "The embedded database has one role, its owner. Set DATABASE_URL to a shared database."
        )
    database = Database(ctx.settings.database_url)
    described = ctx.application.service_map
    sources = None if described is None else described.sources
    written = [] if described is None else described.written
    name = database.engine.url.database or ""
    for statement in grants(role, As(purpose), database=name, sources=sources, written=written):
        show(statement)
    return DONE
