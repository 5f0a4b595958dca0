"""``toolkit evidence``: upload, verify and list files and records, withdraw or open one, write the custody log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

import click

from toolkit.cli.context import NonEmptyPath, finish, json_option, pass_kit, reason_for
from toolkit.cli.printing import note, print_json, show
from toolkit.evidence.records import LONGEST_SECONDS
from toolkit.kit.spoken import readable
from toolkit.log.sealing import export_log

if TYPE_CHECKING:
    from toolkit.kit.connection import Kit


@click.command(short_help="Read every file that was not verified in its present version.")
@json_option
@pass_kit
def verify(kit: Kit, as_json: bool) -> int:
    """Read every file in the bucket that was not verified in its present version.

    \b
    A document must be a whole PDF with pages that anybody can open; a recording must be
    whole, last a second and not be silent. What was found is kept with the file's SHA-256,
    so that no file is read twice, unless a newer or an additional reader was installed since.
    Nothing in a file is executed. The sales of unusable files are named by: toolkit report

    \b
    Example:
      toolkit bucket sync
      toolkit evidence verify

    Exit status 3: some of the files are unusable, or could not be read.
    """
    return finish(kit.verify_contents(), as_json)


@click.command()
@click.option("--show-names", is_flag=True, help="Also show the names of the files; needs --reason.")
@click.option(
    "--reason", default="", help="The reason for showing names; the custody log keeps it with your account."
)
@json_option
@pass_kit
def findings(kit: Kit, show_names: bool, reason: str, as_json: bool) -> int:
    """List the findings about the files in the bucket.

    \b
    The same file for more than one sale, or as two types of one sale; a file that was
    written after its credentials had run out, or replaced after it was seen; a record
    that another partner than that of the sale requested; another type than declared; a
    document with scripts, attachments or links; a file without a record, or where no
    upload form leads.

    \b
    Names of files may be those of people: only the folders are told, unless --show-names asks
    for the names, which the custody log then tells by an event UNMASKED.

    \b
    Example:
      toolkit bucket sync --verify
      toolkit evidence findings --json > findings.json
      toolkit evidence findings --show-names --reason "foreign files are to be moved"

    Exit status 3: there are findings. What sales lack is told by: toolkit audit
    """
    unmask = reason_for(show_names, reason, "--show-names")
    return finish(kit.file_findings(unmask=unmask), as_json)


@click.command("list", short_help="List the evidence records of a sale with their ids and files.")
@click.argument("sale_id")
@json_option
@pass_kit
def list_records(kit: Kit, sale_id: str, as_json: bool) -> None:
    """List the evidence records of the sale SALE_ID with their ids, by what was last seen of the bucket.

    \b
    A fault says why a file does not count (toolkit explain CODE).

    \b
    Example:
      toolkit evidence list V-2026-00064
      toolkit evidence withdraw EVIDENCE_ID --reason "sent twice" --by ana --approved-by bruno
    """
    finish(kit.records(sale_id), as_json)


@click.command(short_help="Take an evidence record out of the count, once and for all.")
@click.argument("evidence_id", type=click.UUID)
@click.option("--reason", required=True, help="The reason why the record must not count.")
@click.option("--by", "withdrawn_by", required=True, help="The person who asks for the withdrawal.")
@click.option("--approved-by", required=True, help="The approver; not the same person.")
@json_option
@pass_kit
def withdraw(kit: Kit, evidence_id: UUID, reason: str, withdrawn_by: str, approved_by: str, as_json: bool) -> None:
    """Take the evidence record EVIDENCE_ID out of the count, once and for all.

    \b
    That is how a conflict is mended. The file stays in the bucket.

    \b
    Example:
      toolkit evidence withdraw 0199c0de-0000-7000-8000-000000000001 \\
        --reason "KYC of another client" --by ana@example.com --approved-by rui@example.com
    """
    done = kit.withdraw(evidence_id, reason=reason, by=withdrawn_by, approved_by=approved_by)
    if as_json:
        print_json({"id": done.evidence_id, "saleId": done.sale_id, "withdrawnAt": done.withdrawn_at})
    else:
        show("{}: withdrawn from sale {}", done.evidence_id, done.sale_id)


@click.command(short_help="Make a link that opens one file for some minutes.")
@click.argument("evidence_id", type=click.UUID)
@click.option("--reason", required=True, help="The reason for opening the file.")
@click.option("--by", "opened_by", help="The person who opens the file; your account by default.")
@click.option(
    "--seconds", type=click.IntRange(1, LONGEST_SECONDS), default=300, show_default=True, help="Life of the link."
)
@json_option
@pass_kit
def link(kit: Kit, evidence_id: UUID, reason: str, opened_by: str | None, seconds: int, as_json: bool) -> None:
    """Make a link that opens the file of the record EVIDENCE_ID for some minutes.

    \b
    Whoever has the link can read the file until it ends. Who made it and why is kept, and
    the custody log tells of it.

    \b
    Example:
      toolkit evidence link 0199c0de-0000-7000-8000-000000000001 --reason "complaint 4711"
    """
    made = kit.link(evidence_id, reason=reason, by=opened_by, seconds=seconds)
    if as_json:
        print_json({"id": evidence_id, "saleId": made.sale_id, "url": made.url, "expiresAt": made.expires_at})
    else:
        until = readable(made.expires_at, kit.settings.timezone)
        note("{} of sale {}, until {}:", evidence_id, made.sale_id, until)
        show(made.url)


@click.command()
@click.option("--out", type=NonEmptyPath(), required=True, help="The file to write.")
@json_option
@pass_kit
def log(kit: Kit, out: Path, as_json: bool) -> None:
    """Seal the custody log, and write it to a file.

    \b
    The log tells of each record when it was asked for and issued (or RECORDED, where the
    service made it; RECORD_CHANGED and RECORD_GONE where it changed or deleted it), when
    its file was seen, verified, replaced or gone, when it was withdrawn, and of each audit:
    ids, hashes and times only. Each seal covers the one before it. Keep the hash of the newest one where
    nobody who can write to the database can change it: then every later change shows.

    \b
    Examples:
      toolkit evidence log --out custody.jsonl
      toolkit verify custody.jsonl --seal HASH
    """
    seal = export_log(kit.database, out, kit.clock, kit.log_keys)
    kit.keep_seal(seal.hash if seal is not None else None)
    if not kit.log_keys.keys:
        note("the hashes in the log have no key: a CPF can be found by trying all; set TOOLKIT_LOG_KEY")
    if as_json:
        print_json({"file": out, "newestSeal": seal.as_json() if seal else None})
    elif seal is None:
        show("{}: nothing has happened yet", out)
    else:
        show("{}: seal {}, {}", out, seal.number, seal.hash)


@click.group()
def evidence() -> None:
    """Upload evidence files, verify them, and take records out of the count.

    \b
    Examples:
      toolkit evidence upload credentials.jsonl --from files
      toolkit evidence list V-2026-00064
      toolkit evidence verify
    """


for command in (list_records, withdraw, link, verify, findings, log):
    evidence.add_command(command)


@evidence.command(short_help="Send files into the bucket, with the credentials for them.")
@click.argument("credentials", type=NonEmptyPath())
@click.option(
    "--from",
    "folder",
    type=NonEmptyPath(),
    required=True,
    help="Holds the files: saleId/fileName, or fileName where only one line has that name.",
)
@click.option(
    "--allow-host",
    "allowed_hosts",
    metavar="HOST",
    multiple=True,
    help="Send files to this host, too, though it is not the bucket's.",
)
@json_option
@pass_kit
def upload(kit: Kit, credentials: Path, folder: Path, allowed_hosts: tuple[str, ...], as_json: bool) -> int:
    """Send the files that CREDENTIALS (JSON Lines) is for into the bucket.

    \b
    Each file is checked first: it exists, its size is within the form's range, and by its
    bytes it is of the kind that its evidenceType demands. One that fails does not stop the
    others. What was sent is noted in CREDENTIALS.done, so the same command goes on after an
    interruption. Where credentials ran out, request them again with the same manifest. Files
    go to the bucket that EVIDENCE_BUCKET and AWS_ENDPOINT_URL name (to this machine where they
    name none), and to no other unless --allow-host names its host. Where DATABASE_URL is set,
    that bucket must be the one that the database belongs to; without it no database is needed.

    \b
    Example:
      toolkit credentials request manifest.csv --out credentials.jsonl
      toolkit evidence upload credentials.jsonl --from files
      toolkit bucket sync

    Exit status 3: some files were not uploaded; each is named with the reason.
    """
    return finish(kit.upload(credentials, folder, allow_hosts=allowed_hosts), as_json)
