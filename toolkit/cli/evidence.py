"""``toolkit evidence``, ``credentials`` and ``bucket``: credentials, uploads, sync, verification, withdrawal."""

from pathlib import Path
from typing import Any
from uuid import UUID

import click

from toolkit.cli.context import DONE, FAILED, NonEmptyPath, confirm_disappearance, pass_kit, show, shows
from toolkit.database.belonging import adopt_bucket
from toolkit.evidence.records import LONGEST_SECONDS
from toolkit.kit.connection import Kit
from toolkit.kit.shown import Shown, say
from toolkit.kit.spoken import readable
from toolkit.message import recognised

evidence = click.Group("evidence")


@evidence.command(short_help="Read every file that was not verified in its present version.")
@shows()
def verify(kit: Kit) -> Shown[Any]:
    """Read every file in the bucket that was not verified in its present version.

    A document must be a whole PDF with pages that anybody can open; a recording must be
    whole, last a second and not be silent. What was found is kept with the file's SHA-256,
    so that no file is read twice, unless a newer or an additional reader was installed since.
    Nothing in a file is executed. The sales of unusable files are named by: toolkit report

    Example:
      toolkit bucket sync
      toolkit evidence verify

    Exit status 3: some of the files are unusable, or could not be read.
    """
    return kit.verify_contents()


@evidence.command()
@shows()
def findings(kit: Kit) -> Shown[Any]:
    """List what the last audit found about the files in the bucket.

    The same file for more than one sale, or as two types of one sale; a file that was
    written after its credentials had run out, or replaced after it was seen; a record
    that another partner than that of the sale requested; another type than declared; a
    document with scripts, attachments or links; a file without a record, or where no
    upload form leads.

    Names of files may be those of people: only the folders are told.

    Example:
      toolkit audit
      toolkit evidence findings --json > findings.json

    Exit status 3: there are findings. What sales lack is told by: toolkit audit
    """
    return kit.file_findings()


@evidence.command("list", short_help="List the evidence records of a sale with their ids and files.")
@click.argument("sale_id")
@shows(DONE)
def list_records(kit: Kit, sale_id: str) -> Shown[Any]:
    """List the evidence records of the sale SALE_ID with their ids, by what was last seen of the bucket.

    A fault says why a file does not count (toolkit explain CODE).

    Example:
      toolkit evidence list V-2026-00064
      toolkit evidence withdraw EVIDENCE_ID --reason "sent twice" --by ana --approved-by bruno
    """
    return kit.records(sale_id)


@evidence.command(short_help="Take an evidence record out of the count, once and for all.")
@click.argument("evidence_id", type=click.UUID)
@click.option("--reason", required=True, help="The reason why the record must not count.")
@click.option("--by", required=True, help="The person who asks for the withdrawal.")
@click.option("--approved-by", required=True, help="The approver; not the same person.")
@shows(DONE)
def withdraw(kit: Kit, evidence_id: UUID, **people: str) -> Shown[Any]:
    """Take the evidence record EVIDENCE_ID out of the count, once and for all.

    That is how a conflict is mended. The file stays in the bucket.

    Example:
      toolkit evidence withdraw 0199c0de-0000-7000-8000-000000000001 \\
        --reason "KYC of another client" --by ana@example.com --approved-by rui@example.com
    """
    done = kit.withdraw(evidence_id, **people)
    said = say("{}: withdrawn from sale {}", done.evidence_id, done.sale_id)
    document = {"id": done.evidence_id, "saleId": done.sale_id, "withdrawnAt": done.withdrawn_at}
    return Shown(done, [said], document)


@evidence.command(short_help="Make a link that opens one file for some minutes.")
@click.argument("evidence_id", type=click.UUID)
@click.option("--reason", required=True, help="The reason for opening the file.")
@click.option("--by", help="The person who opens the file; your account by default.")
@click.option(
    "--seconds", type=click.IntRange(1, LONGEST_SECONDS), default=300, show_default=True, help="Life of the link."
)
@shows(DONE)
def link(kit: Kit, /, evidence_id: UUID, **given: Any) -> Shown[Any]:
    """Make a link that opens the file of the record EVIDENCE_ID for some minutes.

    Whoever has the link can read the file until it ends. Who made it and why is kept, and
    the custody log tells of it.

    Example:
      toolkit evidence link 0199c0de-0000-7000-8000-000000000001 --reason "complaint 4711"
    """
    made = kit.link(evidence_id, **given)
    until = readable(made.expires_at)
    heading = say("{} of sale {}, until {}:", evidence_id, made.sale_id, until, aside=True)
    document = {"id": evidence_id, "saleId": made.sale_id, "url": made.url, "expiresAt": made.expires_at}
    return Shown(made, [heading, say(made.url)], document)


@evidence.command(short_help="Send files into the bucket, with the credentials for them.")
@click.argument("credentials", type=NonEmptyPath())
@click.option(
    "--from",
    "folder",
    type=NonEmptyPath(),
    required=True,
    help="Holds the files: saleId/fileName, or fileName where only one line has that name.",
)
@shows()
def upload(kit: Kit, credentials: Path, folder: Path) -> Shown[Any]:
    """Send the files that CREDENTIALS (JSON Lines) is for into the bucket.

    Each file is checked first: it exists, its size is within the form's range, and by its
    bytes it is of the kind that its evidenceType demands. One that fails does not stop the
    others. What was sent is noted in CREDENTIALS.done, so the same command goes on after an
    interruption. Where credentials ran out, request them again with the same manifest. Files
    go to the bucket that EVIDENCE_BUCKET and AWS_ENDPOINT_URL name (to this machine where they
    name none), and to no other. Where DATABASE_URL is set, that bucket must be the one that the
    database belongs to; without it no database is needed.

    Example:
      toolkit credentials request manifest.csv --out credentials.jsonl
      toolkit evidence upload credentials.jsonl --from files
      toolkit bucket sync

    Exit status 3: some files were not uploaded; each is named with the reason.
    """
    return kit.upload(credentials, folder)


credentials = click.Group("credentials")


@credentials.command(short_help="Ask for credentials for each file of a manifest.")
@click.argument("manifest", type=NonEmptyPath())
@click.option("--out", type=NonEmptyPath(), required=True, help="The credentials file to write.")
@shows(FAILED)
def request(kit: Kit, manifest: Path, out: Path) -> Shown[Any]:
    """Ask for credentials for each file that MANIFEST (CSV or XLSX) names.

    Columns: saleId, fileName, fileFormat, type, evidenceType. For example:
      VND-0001,contrato.pdf,application/pdf,application/pdf,DOC_CONTRATANTE
      VND-0001,gravacao.mp3,audio/mpeg,audio/mpeg,POV

    The credentials go to the file of --out and nowhere else: JSON Lines, one object for each
    file in the order of MANIFEST, mode 0600. Whoever reads it may upload in your name.

    All rows or none: where a row is wrong, each one is named with its reasons, and nothing
    is issued. The same MANIFEST again makes no second record for the same sale, type and
    file name: a file that is in the bucket is left out of --out; a record whose credentials
    are still valid gets a new form for what is left of their life.

    Examples:
      toolkit credentials request manifest.csv --out credentials.jsonl
      toolkit evidence upload credentials.jsonl --from files

    Exit status 1: rows are wrong; nothing was issued and --out was not touched.
    """
    return kit.request_credentials(manifest, out=out)


bucket = click.Group("bucket")


@bucket.command(short_help="Take over new, overwritten and vanished objects.")
@click.option("--full", is_flag=True, help="Read every key, not only those that can have changed.")
@click.option(
    "--inventory",
    type=NonEmptyPath(path_type=str),
    metavar="ADDRESS",
    help="Take over an S3 Inventory instead of listing the bucket.",
)
@confirm_disappearance
@shows()
def sync(kit: Kit, full: bool, inventory: str | None, confirmed: bool) -> Shown[Any]:
    """Take over what lies in the bucket: new, overwritten and vanished objects.

    Every object that a record of an open sale (not completed) names is looked at, and so is
    every key where something can have been uploaded since the last time. All other objects
    are looked at every TOOLKIT_RELIST_DAYS (7) days, or now with --full.

    A bucket of many millions of keys need not be listed. ADDRESS is a folder or
    s3://bucket/prefix with S3 Inventories in Parquet, of which the newest is taken. It is
    older than now: what was observed later stays, what contradicts is asked for one by one,
    and reports tell the age of the listing.

    Examples:
      toolkit bucket sync
      toolkit bucket sync --full --json
      toolkit bucket sync --inventory s3://lists/evidence/daily

    See also: toolkit evidence verify --help

    Exit status 3: some files cannot be read: they are archived, or a permission is missing.
    """
    if full and inventory is not None:
        raise click.UsageError("--full and --inventory do not go together; name one.")
    return kit.sync(full=full, inventory=inventory, confirmed=confirmed)


@bucket.command(short_help="Let the database belong to the bucket that is set now.")
@pass_kit
def adopt(kit: Kit) -> None:
    """Let the database belong to the bucket that is set now, because its evidence has moved there.

    A database belongs to the bucket that was first read into it, and refuses any other: what
    is not in a wrong bucket would stand in the history as deleted. The custody log tells of
    the change. Afterwards objects that are not in the new bucket count as vanished.

    Example:
      EVIDENCE_BUCKET=evidence-new toolkit bucket adopt
    """
    former, now = adopt_bucket(kit.database, kit.bucket)
    named = recognised(now, ["{} (embedded bucket)"])
    if former in (None, now):
        show("the database belongs to {}", named)
    else:
        show("the database belongs to {}; before, to {}", named, former)
