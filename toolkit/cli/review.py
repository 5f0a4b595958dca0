"""``toolkit review``: draw files that people look at, hand them out, and keep what was found."""

from pathlib import Path
from typing import Any

import click

from toolkit.cli.context import NonEmptyPath, shows
from toolkit.errors import InvalidFields
from toolkit.kit.connection import Kit
from toolkit.kit.shown import Shown
from toolkit.message import Message

by_reviewer = click.option("--by", "reviewer", metavar="NAME", help="The reviewer; your account by default.")


@click.group()
def review() -> None:
    """Have people look at files: draw a sample, hand out the next file, keep the answers.

    A file to which somebody gives a critical answer is a finding, REVIEW_FAILED. In JupyterLab
    notebook 12_review shows one file after the other with its questions.
    """


@review.command(short_help="Draw files of the last audit, of each partner and type.")
@click.option(
    "--per-partner",
    type=click.IntRange(1, 10_000),
    default=5,
    show_default=True,
    metavar="N",
    help="Files of each partner and type.",
)
@click.option("--of", default="", metavar="TYPES", help="Evidence types; all of the scorecard by default.")
@click.option("--seed", type=int, default=1, show_default=True, help="The same seed draws the same files.")
@click.option(
    "--second",
    "second_share",
    type=click.FloatRange(0, 1),
    default=0.1,
    show_default=True,
    metavar="SHARE",
    help="The share that a second person looks at without the first answer.",
)
@shows()
def draw(kit: Kit, /, **given: Any) -> Shown[Any]:
    """Draw from the files that the last audit counted.

    Of each partner and evidence type so many are drawn, a file with a finding about it three times as
    likely. Seed, numbers and questions are kept; the same seed draws the same files of the same audit.
    Versions that were drawn before are left out until their acceptance ends.

    Examples:
      toolkit review draw --per-partner 5 --of POV,KYC --seed 7
      TOOLKIT_SCORECARD=calls.toml toolkit review draw --second 0.25
    """
    return kit.draw_review(**given)


@review.command("next", short_help="Take the next file; nobody else gets it meanwhile.")
@by_reviewer
@click.option("--most", type=click.IntRange(1, 1000), default=1, show_default=True, help="So many files.")
@click.option("--out", type=NonEmptyPath(), metavar="FILE", help="Write a CSV file to be filled in elsewhere.")
@shows()
def next_file(kit: Kit, /, reviewer: str | None, most: int, out: Path | None) -> Shown[Any]:
    """Take the next file, with the questions about it: it is yours alone for half an hour.

    With --out the files stand in a CSV file, one column a question, and are yours for three days; fill it
    in with yes, no or notApplicable, and give it to: toolkit review import. A second look is handed out
    to another person, without the first answer; it comes for the share that was drawn, and for every file
    with a critical answer. Where two differ, a third person decides.

    Examples:
      toolkit review next
      toolkit review next --by "Ana Souza" --most 20 --out ana.csv
    """
    return kit.desk(reviewer).next(most=most, out=out)


@review.command(short_help="Keep the answers to the questions about a file.")
@click.argument("evidence_id", type=click.UUID)
@click.argument("answers", nargs=-1, metavar="QUESTION=ANSWER...", required=True)
@by_reviewer
@click.option("--comment", metavar="TEXT", help="What else is to be said.")
@shows()
def record(kit: Kit, /, evidence_id: Any, answers: tuple[str, ...], **given: Any) -> Shown[Any]:
    """Keep the answers to all questions about a file that you took: yes, no or notApplicable.

    They are kept once and for all; the custody log tells who answered, when, and about which version.

    Example:
      toolkit review record EVIDENCE_ID heard=yes agrees=no --comment "The client declines."
    """
    marks: dict[str, str | None] = {}
    for each in answers:
        name, equals, answer = each.partition("=")
        if not equals or name in marks:
            raise click.BadParameter(Message("write each question and its answer once, as in {}", "agrees=yes"))
        marks[name] = answer
    try:
        return kit.desk(given["reviewer"]).record(evidence_id, marks, comment=given["comment"])
    except InvalidFields as error:
        listed = "; ".join(f"{item.field}: {item.message}" for item in error.invalid)
        raise click.BadParameter(listed, param_hint="QUESTION=ANSWER") from None


@review.command("import", short_help="Keep the answers in a CSV file that was filled in.")
@click.argument("file", type=NonEmptyPath())
@by_reviewer
@click.option("--out", type=NonEmptyPath(), help="Folder for rejected rows; beside FILE by default.")
@shows()
def import_file(kit: Kit, /, file: Path, reviewer: str | None, out: Path | None) -> Shown[Any]:
    """Keep the answers in FILE, which toolkit review next --out wrote; rows without one are left out.

    Rejected rows come back in FILE.rejected.csv and FILE.rejected.xlsx, to be corrected and imported.

    Example:
      toolkit review import ana.csv --by "Ana Souza"

    Exit status 3: some rows were rejected; each is named with its line.
    """
    return kit.desk(reviewer).load(file, out=out)
