"""Notebook 08: verify the contents of the files in the bucket."""

from toolkit.domain.documents import named
from toolkit.entrypoints.notebooks.display import Bars, Colour, Fact, Facts, Part, Shown
from toolkit.entrypoints.notebooks.notebook_errors import application, told_plainly
from toolkit.entrypoints.notebooks.progress_line import cell_progress
from toolkit.entrypoints.spoken import _
from toolkit.operations.observe.bucket_sync import sync_bucket
from toolkit.operations.verify.contents.queue import Budget
from toolkit.operations.verify.contents.verification import Verified, verify_contents


@told_plainly
def content_verification(*, minutes: int = 10) -> Shown[Verified]:
    """Read the files that were not verified yet for at most so many minutes, and tell what is wrong with them."""
    with application() as opened:
        progress = cell_progress()
        sync_bucket(opened.database, opened.bucket, clock=opened.clock, progress=progress)
        verified = verify_contents(
            opened.database,
            opened.bucket,
            clock=opened.clock,
            budget=Budget(seconds=minutes * 60),
            progress=progress,
        )
    counts = {
        "job": "content_verification",
        **named(verified, "verified", "unusable", "left"),
        "needsAttention": verified.unusable > 0 or verified.unreadable > 0,
    }
    return Shown(verified, _parts(verified), counts)


def _parts(verified: Verified) -> list[Part]:
    facts = [
        Fact("verified", verified.verified, Colour.GOOD),
        Fact("unusable", verified.unusable, Colour.BAD if verified.unusable else Colour.QUIET),
        Fact("unreadable", verified.unreadable, Colour.BAD if verified.unreadable else Colour.QUIET),
        Fact("left for the next time", verified.left, Colour.WARNING if verified.left else Colour.QUIET),
    ]
    hint = _("Notebook 03 names the sales of unusable files.") if verified.unusable else ""
    problems = {str(problem): number for problem, number in verified.problems.items() if number}
    if verified.wrong_kind:
        problems["WRONG_KIND"] = verified.wrong_kind
    parts: list[Part] = [Facts("Files", facts, hint)]
    return [*parts, Bars.ranked("What is wrong with unusable files", problems, Colour.BAD)] if problems else parts
