"""``toolkit evidence verify`` and ``findings``: what is wrong or odd about the files themselves."""

import click

from toolkit.domain.codes import CODES, KindFault
from toolkit.domain.contents import ContentProblem
from toolkit.domain.documents import named
from toolkit.entrypoints.cli.context import DONE, NEEDS_ATTENTION, Context, pass_context
from toolkit.entrypoints.cli.printing import json_option, note, print_json, show
from toolkit.entrypoints.cli.unmasking import show_names_options, unmasking_for
from toolkit.entrypoints.spoken import _, counted, readable, spoken
from toolkit.operations.judge.audit.details import OF_ANY_RECORD, faults_at
from toolkit.operations.prove.custody_log.events import record_unmasking
from toolkit.operations.verify.contents.verification import verify_contents
from toolkit.operations.verify.integrity import integrity_findings_at, records_of_unknown_partners
from toolkit.reports.document_life import fault_records
from toolkit.reports.report import tuples
from toolkit.reports.times import told_detail
from toolkit.storage.observation_clock import final_moment

_SHOWN = 50


@click.command(short_help="Read every file that was not verified in its present version.")
@json_option
@pass_context
def verify(ctx: Context, as_json: bool) -> int:
    """Read every file in the bucket that was not verified in its present version.

    \b
    A document must be a whole PDF with pages that anybody can open; a recording must be
    whole, last a second and not be silent. What was found is kept with the file's SHA-256,
    so that no file is read twice. Nothing in a file is executed or rendered. Every unusable
    file is named with its sale, also those that were found before.

    \b
    Example:
      toolkit bucket sync
      toolkit evidence verify

    Exit status 3: some of the files are unusable, or could not be read.
    """
    space = ctx.application
    verified = verify_contents(space.database, space.bucket, clock=space.clock, progress=ctx.progress)
    moment = space.clock()
    with space.database.at(moment) as connection:
        faults = faults_at(connection, moment, OF_ANY_RECORD)
    if as_json:
        print_json(
            {
                **named(verified, "verified", "unusable"),
                "problems": {problem: verified.problems.get(problem, 0) for problem in ContentProblem},
                **named(verified, "wrong_kind", "left"),
                "unusableFiles": fault_records(faults, ctx.settings.timezone),
                "failures": dict(verified.failures),
            }
        )
    else:
        files = counted(verified.verified, "file")
        show(f"{files} verified: {verified.unusable} unusable, {verified.left} left")
        for problem, count in sorted(verified.problems.items()):
            note(f"{count} {problem}: {_(CODES[problem].meaning)}")
        for failure, count in sorted(verified.failures.items()):
            note(f"{count} {failure}: {_(failure.text)}")
        if verified.wrong_kind:
            note(f"{verified.wrong_kind} {KindFault.WRONG_KIND}: {_(CODES[KindFault.WRONG_KIND].meaning)}")
        for fault in tuples(faults.head(_SHOWN)):
            since = readable(fault.since, ctx.settings.timezone)
            show(f"{fault.saleId}  {fault.evidenceType}  {fault.code}  since {since}  {fault.evidenceId}")
        if len(faults) > _SHOWN:
            note(f"... and {len(faults) - _SHOWN:,} more unusable files; --json lists all of them")
    return NEEDS_ATTENTION if len(faults) or verified.unusable or verified.left else DONE


@click.command()
@show_names_options
@json_option
@pass_context
def findings(ctx: Context, show_names: bool, reason: str, as_json: bool) -> int:
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
    database, clock = ctx.application.database, ctx.application.clock
    unmasking = unmasking_for(show_names, reason, "--show-names")
    moment = final_moment(database, clock)
    if unmasking is not None:
        with database.transaction() as connection:
            record_unmasking(connection, unmasking, "file names of findings", moment)
    with database.at(moment) as connection:
        found = integrity_findings_at(connection, moment)
        unknown = records_of_unknown_partners(connection, moment)
    if as_json:
        document = [
            {"text": CODES[each.problem].meaning, "sales": each.sale_ids}
            | named(each, "problem", "detail", "evidence_ids", "keys" if show_names else "folders")
            for each in found
        ]
        print_json({"findings": document, "recordsOfUnknownPartners": unknown})
    else:
        for finding in found:
            about = ", ".join(finding.keys if show_names else finding.sale_ids or finding.folders)
            detail = f" ({told_detail(finding.detail, spoken(), ctx.settings.timezone)})" if finding.detail else ""
            show(f"{finding.problem}: {about}: {_(CODES[finding.problem].meaning)}{detail}")
        if not found:
            show("no findings about files")
        if unknown:
            of = counted(unknown, "record")
            note(f"note: of {of} it is not known for which partner the request was made")
    return NEEDS_ATTENTION if found else DONE
