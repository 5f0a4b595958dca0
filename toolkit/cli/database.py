"""``toolkit up``, ``down``, ``status`` and ``db``: the services that the toolkit stands on, and the schema."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from toolkit import embedded
from toolkit.cli.context import NonEmptyPath, finish, note, pass_kit, show, shows
from toolkit.database import schema
from toolkit.database.belonging import adopt_service, confirm_restore
from toolkit.database.schema import As, grants
from toolkit.database.service_sql import draft, prove
from toolkit.errors import BucketError, InvalidInput, SettingsError
from toolkit.kit.connection import Kit
from toolkit.kit.health import service_health
from toolkit.kit.shown import Shown, remark, say
from toolkit.kit.spoken import _, current_language


@click.command()
@pass_kit
def up(kit: Kit) -> None:
    """Start the embedded services and make their schema ready; say where they are.

    Without this command they start at their first use. They are shared by everything that uses
    the same TOOLKIT_HOME, and run on until: toolkit down

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

    Example:
      toolkit status
      toolkit status --json
    """
    return service_health(kit.settings)


@click.group()
def db() -> None:
    """The schema of the database, and how the tables of the sales service are read.

    The service's tables may be named and built in any way. A file of SQL yields the contract's
    columns from them, and TOOLKIT_SERVICE_SQL names it: from nothing to the first report.

    Example:
      toolkit db map --sales crm.sale --records crm.file --out service.sql    a beginning
      export TOOLKIT_SERVICE_SQL=service.sql      once each TODO in it is replaced
      toolkit db upgrade                          the toolkit's own schema, audit
      toolkit db check                            what is odd about the data, read so
      toolkit report --out reports
    """


@db.command()
@click.option("--service-tables", is_flag=True, help="Also create the service's tables, where there are none.")
@pass_kit
def upgrade(kit: Kit, service_tables: bool) -> None:
    """Bring the schema to this version, all or nothing.

    The tables of the sales service are never altered, and nothing is stored beside them. TOOLKIT_SERVICE_SQL
    names the SQL that reads them. Without it they are the contract's own (clients, addresses, sales, evidences) in
    schema public; where there are none yet, --service-tables creates them, and in the embedded database that is
    always done.

    Example:
      toolkit db upgrade
      DATABASE_URL=postgresql://toolkit@db.example/sales toolkit db upgrade --service-tables
    """
    service = kit.service
    if service_tables and not service.is_own:
        raise click.UsageError(
            "--service-tables makes the contract's own tables; TOOLKIT_SERVICE_SQL names others."
        )
    with kit.opened(service) as database:
        schema.upgrade(database, service_tables=service_tables or database.embedded)
        show("{}: schema {}", database.address, schema.newest_revision())


@db.command("map", short_help="Print the beginning of a service.sql.")
@click.option("--sales", metavar="TABLE", help="The table of the sales.")
@click.option("--records", metavar="TABLE", help="The table of the evidence records.")
@click.option("--clients", metavar="TABLE", help="The table of the clients.")
@click.option("--out", type=NonEmptyPath(), help="The file to write; without it the skeleton goes to stdout.")
@pass_kit
def map_(kit: Kit, sales: str | None, records: str | None, clients: str | None, out: Path | None) -> None:
    """Print the beginning of a service.sql for the tables that are named.

    Columns that are called and typed as the contract's are filled in. What else it needs says TODO,
    which no database takes. Above stand all columns of the table, with their types and keys, and
    their codes where they hold a few. No other value of a row is shown. Where EVIDENCE_BUCKET is
    set, the bucket is asked which text column holds keys. Without tables, those that are there
    are listed.

    Example:
      toolkit db map
      toolkit db map --sales crm.sales_sale --records crm.sales_evidence --out service.sql
    """
    if out is not None and out.exists():
        raise InvalidInput("{} is there already; name another file, or remove it.", out)
    named = {"sales": sales, "records": records, "clients": clients}
    with kit.opened() as database:
        holds = _holds(kit)
        with database.transaction() as connection:
            lines = draft(connection, {name: table for name, table in named.items() if table}, holds)
    text = "\n".join(map(_, lines))
    if out is None:
        click.echo(text)
    else:
        out.write_text(f"{text}\n", encoding="utf-8")
        show("{}: written", out)


@db.command(short_help="Prove service.sql on the data.")
@shows()
def check(kit: Kit) -> Shown[Any]:
    """Prove service.sql on the data: what the audit could not read, would misread or leave out.

    Counted are rows without ids, repeated ids and keys, codes that the contract does not know,
    infinite and future times, rows that name nothing. Every audit counts the same and says what
    changed. Before them stand the rows of each code: does somebody who knows the service agree?
    Where EVIDENCE_BUCKET is set, the newest keys are looked for there. Notes say which commands
    could not write, and why.

    Examples:
      toolkit db check
      toolkit db check --json

    Exit status 3: something has to be looked at.
    """
    proof = prove(kit.database, _holds(kit))
    counts = [proof["counts"][name] for name in ("sales", "records", "clients")]
    parts = [say("sales: {:,}, records: {:,}, clients: {:,}", *counts)]
    parts += [say("{}: {}", column, said) for column, said in proof["values"].items()]
    parts += [*map(say, proof["flaws"]), *(remark("note", text) for text in proof["notes"])]
    return Shown(proof, parts, proof, bool(proof["flaws"]))


@db.command(short_help="Let the data belong to this service.")
@pass_kit
def adopt(kit: Kit) -> None:
    """Let the toolkit's data belong to the service that is set now, because it has moved.

    What the toolkit keeps is about one service: a cluster of PostgreSQL and a database in it.
    After a restore in another place every command refuses to write until this confirms it.
    Which tables are read is in service.sql alone: a table that was swapped is read anew.
    The custody log tells of the change; after a restore it goes on in a new epoch.

    Example:
      toolkit status
      toolkit db adopt
    """
    former, now = adopt_service(kit.any_service)
    if former in (None, now):
        show("the toolkit's data belong to {}", now)
    else:
        show("the toolkit's data belong to {}; before, to {}", now, former)


@db.command("confirm-restore", short_help="Confirm a restore in place.")
@click.option("--reason", required=True, help="What happened, and what it took back.")
@click.option("--by", "confirmed_by", required=True, metavar="NAME", help="Who found out.")
@click.option("--approved-by", required=True, metavar="NAME", help="Somebody else, who approved it.")
@pass_kit
def confirm(kit: Kit, /, **stated: str) -> None:
    """Confirm, by two people, that the database was restored from an older dump.

    Such a dump takes back what was written since, such as withdrawals and waivers. An audit
    notices it by a seal of the custody log that it kept in TOOLKIT_HOME, and says so, with exit
    status 3, until this command. Repeat what was lost before or after it.

    Example:
      toolkit db confirm-restore --by Ana --approved-by Rui --reason "disk failure, dump of 20 Nov"
    """
    confirm_restore(kit.database, **stated)
    show("the restore is confirmed")


@db.command("grants", short_help="Print the SQL that gives a role the rights it needs.")
@click.option("--role", required=True, metavar="NAME", help="The role that gets the rights; it has to exist.")
@click.option(
    "--as",
    "purpose",
    type=click.Choice([each.value for each in As]),
    required=True,
    help="Owner, operator or reader, see above.",
)
@pass_kit
def print_grants(kit: Kit, role: str, purpose: str) -> None:
    """Print the SQL that gives a role all the rights it needs, and nothing else. Nothing is executed.

      owner      upgrades the toolkit's schema, and erases personal data; used by hand
      operator   the server and nightly jobs: audits, loads, credentials, completion
      reader     looks at audits of past moments, findings and reports

    The operator is not the owner: an owner of schema audit could switch off the triggers that keep
    history. Run the SQL as the owner of the database, and again after each upgrade.

    The service's tables are those that the statements of service.sql name.

    Examples:
      toolkit db grants --role toolkit_owner --as owner | psql "$ADMIN_URL"
      toolkit db grants --role toolkit_night --as operator
    """
    if kit.settings.database_url is None:
        raise SettingsError(
            "The embedded database has one role, its owner. Set DATABASE_URL to a shared database."
        )
    with kit.opened(kit.service) as database, database.transaction() as connection:
        given = grants(connection, role, As(purpose))
    for statement in given:
        show(statement)


def _holds(kit: Kit) -> Callable[[str], bool] | None:
    """Tell whether the bucket holds an object; ``None`` where there is no bucket that answers."""
    if kit.settings.evidence_bucket is None:
        return None
    try:
        bucket = kit.bucket
        bucket.check()
    except BucketError as error:
        note("note: the bucket was not looked at. {}", error)
        return None
    return lambda key: bucket.head(key) is not None
