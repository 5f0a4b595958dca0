"""The reviews of people as an audit sees them: its working tables, and the files that fail."""

# statements are made of constants

from __future__ import annotations

from datetime import datetime
from typing import Final

import sqlalchemy as sa

from toolkit.database.tables import moment as time
from toolkit.database.tables import review_answers, review_draws, review_turns


def turns_until(moment: datetime) -> sa.Select[tuple[object, ...]]:
    """Return the looks that files needed by a moment, whether or not somebody has looked, and their draws."""
    wanted = ("id", "draw_id", "evidence_id", "object_id", "turn", "sale_id", "evidence_type")
    draw = review_draws.c
    plan = (
        draw.as_of.label("drawn_from"),
        draw.seed,
        draw.plan["perPartner"].astext.cast(sa.BigInteger).label("per_partner"),
        draw.plan["secondShare"].astext.cast(sa.Double).label("second_share"),
    )
    drawn = review_turns.join(review_draws, draw.id == review_turns.c.draw_id)
    return sa.select(*review_turns.c[wanted], *plan).select_from(drawn).where(review_turns.c.added_at <= moment)


def answers_until(moment: datetime) -> sa.TextualSelect:
    """Return the answers that people had given by a moment: one row an answer, with the words of its question."""
    query = sa.text(_ANSWERS).bindparams(sa.bindparam("moment", moment, time))
    texts = (sa.column(name, sa.Text) for name in ("reviewer", "question", "answer", "words"))
    return query.columns(
        sa.column("turn_id", sa.BigInteger),
        *texts,
        sa.column("critical", sa.Boolean),
        sa.column("answered_at", time),
        sa.column("ends_on", sa.Date),
    )


_ANSWERS: Final = f"""
    SELECT turn_id, reviewer, given.key AS question, given.value AS answer,
           (SELECT asked ->> 'text' FROM jsonb_array_elements(draw.scorecard -> 'question') AS asked
            WHERE asked ->> 'id' = given.key) AS words,
           given.key = ANY (failures) AS critical, answered_at, ends_on
    FROM {review_answers} AS answer
    JOIN {review_turns} AS turn ON turn.id = turn_id
    JOIN {review_draws} AS draw ON draw.id = draw_id
    CROSS JOIN jsonb_each_text(answers) AS given
    WHERE answered_at <= :moment
"""

REVIEWS: Final = """
    CREATE OR REPLACE TABLE review AS
    WITH looked AS (
        SELECT turned.id, draw_id, turned.evidence_id, object_id, turned.sale_id, turned.evidence_type, turn,
               reviewer, question, words, answer, critical, answered_at, ends_on,
               drawn_from, seed, per_partner, second_share,
               record.object IS NOT DISTINCT FROM object_id AND withdrawn_at IS NULL AS standing
        FROM turned
        LEFT JOIN given_answer ON turn_id = turned.id
        LEFT JOIN record ON record.evidence_id = turned.evidence_id
    ),
    decided AS (
        SELECT draw_id, evidence_id, question,
               CASE WHEN max(turn) = 3 THEN arg_max(critical, turn) ELSE bool_or(critical) END AS failing
        FROM looked WHERE question IS NOT NULL GROUP BY ALL
    )
    SELECT looked.*, failing, bool_or(failing) OVER (PARTITION BY draw_id, evidence_id) AS failed
    FROM looked LEFT JOIN decided USING (draw_id, evidence_id, question)
"""
"""One row an answer, or a look that nobody had: ``failing`` is what all looks say of the question (a third
decides, and until then a critical answer stands), ``failed`` of the file, null while nobody has looked at it."""

FAILED: Final = """
    SELECT [object_key], [CAST(evidence_id AS VARCHAR)], [any_value(standing.sale_id)],
           string_agg(DISTINCT words, '; ' ORDER BY words)
    FROM review JOIN standing USING (evidence_id)
    WHERE review.standing AND failing
    GROUP BY evidence_id, object_key
"""
"""The records whose file, as it lies there, failed a review; the view ``standing`` has those not withdrawn."""

AS_WRITTEN: Final = """
    SELECT CAST(draw_id AS VARCHAR) AS draw_id, CAST(evidence_id AS VARCHAR) AS evidence_id, review.sale_id,
           partner, evidence_type, turn, reviewer, question, words, answer, critical, failing, failed, standing,
           answered_at, ends_on, drawn_from, seed, per_partner, second_share
    FROM review LEFT JOIN sale USING (sale_id)
    ORDER BY draw_id, evidence_id, turn, question
"""
"""The query of ``reviews.parquet``; each row has the seed and plan of its draw, and the audit it was made from."""
