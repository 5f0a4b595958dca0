"""The reviews of people in a report: shares of failed files with intervals, and how far people agree."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import sqrt
from typing import Final

import pandas as pd

from toolkit.audit.folder import Audit
from toolkit.contract.rules import EvidenceState

_QUESTIONS: Final = ("partner", "question", "drawn", "lookedAt", "failed", "share", "low", "high")
_AGREEMENT: Final = ("question", "reviewer", "compared", "agreed", "kappa")


@dataclass(frozen=True, eq=False)
class Reviews:
    """The looks of people at files, of all partners or of one."""

    files: int = 0
    """Counted files."""
    drawn: int = 0
    """Files of samples, in the versions that were drawn."""
    looked_at: int = 0
    """Counted files of which the version that lies there was looked at."""
    failed: int = 0
    """Those of them that failed."""
    accepted: int = 0
    """Those of them that passed, and whose acceptance has not ended."""
    questions: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=_QUESTIONS))
    """One row a ``partner`` and ``question``, null for all of them: ``drawn`` files, those ``lookedAt`` and
    ``failed``; the ``share`` of these from 0 to 1, and the interval from ``low`` to ``high``."""
    agreement: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=_AGREEMENT))
    """One row a ``question`` and ``reviewer``: files ``compared``, the share ``agreed``, and Cohen's ``kappa``."""


def read_reviews(audit: Audit) -> Reviews:
    """Read the reviews of an audit folder; an audit of an earlier version has none."""
    if "reviews" not in audit.facts.parts:
        return Reviews()
    today = audit.facts.as_of
    [row] = audit.sql(_COUNTS, today, audit.facts.timezone, str(EvidenceState.COUNTED)).to_pylist()
    if not row["drawn"]:
        return Reviews(**row)
    questions: pd.DataFrame = audit.sql(_BY_QUESTION).to_pandas(integer_object_nulls=True).astype(object)
    intervals = [
        interval(*map(int, each)) for each in zip(questions["failed"], questions["lookedAt"], strict=True)
    ]
    shares = pd.DataFrame(intervals, columns=["share", "low", "high"], index=questions.index, dtype=object)
    people = Reviews().agreement if audit.is_told else _agreement(audit.sql(_PAIRS).to_pandas())
    return Reviews(**row, questions=questions.join(shares), agreement=people)


_Z: Final = 1.959964
"""The deviations that 95 per cent of a normal distribution lie within."""


def interval(failed: int, looked_at: int) -> tuple[float | None, float | None, float | None]:
    """Return the share of ``failed`` ones and Wilson's 95 per cent interval of it; nothing where nobody looked."""
    if not looked_at:
        return None, None, None
    share, square = failed / looked_at, _Z**2
    middle = (share + square / (2 * looked_at)) / (1 + square / looked_at)
    half = _Z / (1 + square / looked_at) * sqrt(share * (1 - share) / looked_at + square / (4 * looked_at**2))
    return share, max(middle - half, 0.0), min(middle + half, 1.0)


def _agreement(pairs: pd.DataFrame) -> pd.DataFrame:
    """Compare each reviewer with whoever else looked at the same file."""
    rows = [
        (*names, len(both), float((both["own"] == both["other"]).mean()), kappa(both))
        for names, both in pairs.groupby(["words", "reviewer"])
    ]
    return pd.DataFrame(rows, columns=_AGREEMENT)


def kappa(pairs: pd.DataFrame) -> float | None:
    """Return Cohen's kappa of the columns ``own`` and ``other``, ``None`` where both know one answer only."""
    agreed = (pairs["own"] == pairs["other"]).mean()
    own, other = (pairs[name].value_counts(normalize=True) for name in ("own", "other"))
    by_chance = float((own * other).sum())
    return None if by_chance == 1 else float((agreed - by_chance) / (1 - by_chance))


_COUNTS: Final = """
    WITH present AS (
        SELECT evidence_id, arg_max(failed, answered_at) AS failed, max(ends_on) AS ends_on FROM reviews
        WHERE standing AND answered_at IS NOT NULL GROUP BY evidence_id
    ), counted AS (SELECT evidence_id FROM files WHERE state = $3)
    SELECT (SELECT count(*) FROM counted) AS files,
        (SELECT count(DISTINCT (draw_id, evidence_id)) FROM reviews) AS drawn,
        count(*) AS looked_at, count(*) FILTER (failed) AS failed,
        count(*) FILTER (NOT failed AND ends_on > CAST($1 AT TIME ZONE $2 AS DATE)) AS accepted
    FROM counted JOIN present USING (evidence_id)
"""

_BY_QUESTION: Final = """
    WITH answer AS (
        SELECT DISTINCT draw_id, evidence_id, partner, words, failing, failed FROM reviews
    ), every AS (SELECT DISTINCT draw_id, evidence_id, partner, failed FROM answer)
    SELECT partner, NULL AS question, count(*) AS drawn, count(failed) AS "lookedAt",
        count(*) FILTER (failed) AS failed
    FROM every GROUP BY partner
    UNION ALL
    SELECT partner, words, NULL, count(*), count(*) FILTER (failing)
    FROM answer WHERE words IS NOT NULL GROUP BY partner, words
    ORDER BY partner NULLS LAST, question NULLS FIRST
"""

_PAIRS: Final = """
    SELECT one.words, one.reviewer, one.answer AS own, two.answer AS other
    FROM reviews AS one JOIN reviews AS two USING (draw_id, evidence_id, question)
    WHERE one.turn <> two.turn AND one.turn <= 2 AND two.turn <= 2
    ORDER BY ALL
"""
