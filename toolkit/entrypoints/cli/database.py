"""``toolkit db``: the toolkit's schema, and how the service's own tables are read."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Final

import click

from toolkit.entrypoints.cli.context import DONE, NEEDS_ATTENTION, Context, Place, pass_context
from toolkit.entrypoints.cli.printing import json_option, note, print_json, show
from toolkit.errors import BucketError, InvalidInput, SettingsError
from toolkit.operations.observe.belonging import adopt_service
from toolkit.storage import embedded, schema
from toolkit.storage.database import Database
from toolkit.storage.grants import As, grants
from toolkit.storage.service_map.draft import draft_map
from toolkit.storage.service_map.proof import prove


@click.group()
def db() -> None:
    """The schema of the database, and how the tables of the sales service are read.

    \b
    The service's tables may be named and built in any way. A mapping file says where each
    piece of data comes from, and TOOLKIT_SERVICE_MAP names it: from nothing to the first report.

    \b
    Example:
      toolkit db map --out service.toml       a first draft; look through it, fill in TODO
      export TOOLKIT_SERVICE_MAP=service.toml
      toolkit db upgrade                      views in schema audit_service, and schema audit
      toolkit db check                        what is odd about the data, read so
      toolkit report --out reports
    """


@db.command()
@click.option("--service-tables", is_flag=True, help="Also create the service's tables, where there are none.")
@click.option(
    "--partition-by-month",
    is_flag=True,
    help="Partition the observations of sales and records by the month in which they ended.",
)
@pass_context
def upgrade(ctx: Context, service_tables: bool, partition_by_month: bool) -> None:
    """Bring the toolkit's schema to this version, all or nothing.

    The tables of the sales service are never altered. With TOOLKIT_SERVICE_MAP they are read through views in
    schema audit_service, which are made again when the file changes. Without it they are the contract's own
    (clients, addresses, sales, evidences) in schema public; where there are none yet, --service-tables creates
    them, and in the embedded database that is always done.

    With --partition-by-month whole months of ended observations can be moved to a snapshot (toolkit snapshot
    move). Nobody reads or writes them while that is done. Repeat it within two years: it adds the months to come.

    \b
    Example:
      toolkit db upgrade
      toolkit db upgrade --partition-by-month
      DATABASE_URL=postgresql://toolkit@db.example/sales toolkit db upgrade --service-tables
    """
    described = ctx.application.service_map
    if service_tables and described is not None:
        raise click.UsageError(
            "--service-tables makes the contract's own tables; TOOLKIT_SERVICE_MAP names others."
        )
    with _opened(ctx, mapped=described is not None) as database:
        schema.upgrade(
            database,
            service_tables=described is None and (service_tables or database.embedded),
            service_map=described,
            by_month=partition_by_month,
        )
        views = "" if described is None else f", views of mapping {described.fingerprint}"
        show(f"{database.address}: schema {schema.newest_revision()}{views}")


@db.command("map")
@click.option("--out", type=Place(), help="The file to write; without it the draft goes to stdout.")
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@pass_context
def map_(ctx: Context, out: Path | None, force: bool) -> int:
    """Look at a database and write a first mapping file for it.

    \b
    Names in English, Portuguese, Spanish and German, types, foreign keys, enums, comments such as
    "1 = A, 2 = B" and some values are looked at; no value but a code gets into the file.
    What was taken by its name or by habit says REVIEW, what only a person knows says TODO.
    Where EVIDENCE_BUCKET is set, some keys are looked for there.

    \b
    Example:
      DATABASE_URL=postgresql://toolkit@db.example/sales toolkit db map --out service.toml

    Exit status 3: something has to be filled in.
    """
    if out is not None and out.exists() and not force:
        raise InvalidInput(f"{out} is there already; --force writes over it.")
    with _opened(ctx, mapped=True) as database:
        holds = _holds(ctx)
        draft = draft_map(database, ctx.settings.timezone.key, holds, _folders(ctx) if holds else ())
    if out is None:
        click.echo(draft.text, nl=False)
    else:
        out.write_text(draft.text, encoding="utf-8")
        show(f"{out}: written")
    for words, names in (("to fill in (TODO)", draft.to_fill_in), ("to review", draft.to_review)):
        if names:
            note(f"{words}: {', '.join(names)}")
    return NEEDS_ATTENTION if draft.to_fill_in else DONE


@db.command(short_help="Prove the mapping on the data.")
@json_option
@pass_context
def check(ctx: Context, as_json: bool) -> int:
    """Prove the mapping on the data: what the audit could not read, would misread or leave out.

    \b
    Looked at: values that cannot be read, missing and repeated keys, codes that the contract
    does not know, infinite times and wrong zones, rows that belong to nothing, and, where
    EVIDENCE_BUCKET is set, whether the newest keys lie in the bucket; rows that row level security
    hides, or that where leaves out because a value is missing. Rows are named by their ids. The
    picture before them says how many rows each code has: does somebody who knows the service agree?
    Notes say which commands could not write, and why.

    \b
    Examples:
      toolkit db check
      toolkit db check --json

    Exit status 3: something deviates.
    """
    described = ctx.application.service_map
    proof = prove(ctx.application.database, described, _holds(ctx))
    if as_json:
        deviations = [asdict(deviation) for deviation in proof.deviations]
        found = {"rows": proof.rows, "picture": proof.picture, "deviations": deviations}
        print_json({**found, "notes": list(proof.notes)})
    else:
        show(", ".join(f"{count} {name}" for name, count in proof.rows.items()))
        for column, said in proof.picture.items():
            show(f"{column}: {said}")
        for deviation in proof.deviations:
            show(f"deviates: {deviation.text}")
        for text in proof.notes:
            note(f"note: {text}")
    return NEEDS_ATTENTION if proof.deviations else DONE


@db.command(short_help="Let the toolkit's data belong to the service that is set now.")
@pass_context
def adopt(ctx: Context) -> None:
    """Let the toolkit's data belong to the service that is set now, because it has moved.

    \b
    What the toolkit keeps is about one service: a cluster of PostgreSQL, a database in it, and
    the tables that sales and evidence records are read from. After a restore in another place,
    or with a mapping to other tables, every command refuses to write until this confirms it.
    The custody log tells of the change; after a restore it goes on in a new epoch.

    \b
    Example:
      toolkit status
      toolkit db adopt
    """
    former, now = adopt_service(ctx.application.any_service, ctx.application.clock)
    before = "" if former in (None, now) else f"; before, to {former}"
    show(f"the toolkit's data belong to {now}{before}")


@db.command(short_help="Let go of the service's tables, so that it may change them.")
@pass_context
def release(ctx: Context) -> None:
    """Let the views of the mapping read nothing, so that the service may change its tables.

    \b
    PostgreSQL keeps a service from dropping or retyping a column that a view reads. After this
    command it may; until the next "db upgrade" every other command stops with a sentence. The
    rights that were granted on the views stay.

    \b
    Example:
      toolkit db release
      ... the service's own migration ...
      toolkit db upgrade
      toolkit db check
    """
    with _opened(ctx, mapped=True) as database:
        schema.release(database)
        show(f"{database.address}: the views read nothing until: toolkit db upgrade")


@db.command("grants", short_help="Print the SQL that gives a role the rights it needs.")
@click.option("--role", required=True, metavar="NAME", help="The role that gets the rights; it has to exist.")
@click.option(
    "--as",
    "purpose",
    type=click.Choice([each.value for each in As]),
    required=True,
    help="Owner, operator or reader, see above.",
)
@pass_context
def print_grants(ctx: Context, role: str, purpose: str) -> None:
    """Print the SQL that gives a role all the rights it needs, and nothing else. Nothing is executed.

    \b
      owner      upgrades the toolkit's schema; used by hand
      operator   the server and nightly jobs: audits, loads, credentials, completion
      reader     looks at audits of past moments, findings and reports

    The operator is not the owner: an owner of schema audit could switch off the triggers that keep
    history. Run the SQL as the owner of the database, and again after each upgrade.

    A table inside SQL of the mapping gets its rights where it is named there with its schema.

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


def _holds(ctx: Context) -> Callable[[str], bool] | None:
    """Tell whether the bucket holds an object; ``None`` where there is no bucket that answers."""
    if ctx.settings.evidence_bucket is None:
        return None
    try:
        bucket = ctx.application.bucket
        bucket.check()
    except BucketError as error:
        note(f"note: the bucket was not looked at. {error}")
        return None
    return lambda key: bucket.head(key) is not None


def _folders(ctx: Context) -> list[str]:
    """Return the first folders of the bucket, and those inside them where they are few."""
    first = ctx.application.bucket.folders()
    return first + [inner for each in first[:_OPENED] for inner in ctx.application.bucket.folders(each)]


_OPENED: Final = 3


@contextmanager
def _opened(ctx: Context, *, mapped: bool) -> Iterator[Database]:
    """Open the database as it is, whether its schema fits or not."""
    url = ctx.settings.database_url
    database = Database(url or embedded.database_url(ctx.settings.home), embedded=url is None, mapped=mapped)
    try:
        yield database
    finally:
        database.dispose()
