"""Files that people look at: draw a sample that can be repeated, hand out file after file, keep the answers.

A drawn version of a file needs one look, and a second one by another person where it is drawn for that or where
the first found something critical; where the two differ, a third decides. An answer is kept once and for all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID
from zoneinfo import ZoneInfo

import sqlalchemy as sa
from sqlalchemy import Connection, Row
from sqlalchemy.dialects.postgresql import insert

from toolkit.bucket.client import Bucket
from toolkit.contract.events import CustodyEvent
from toolkit.contract.evidence import EvidenceType
from toolkit.contract.fields import UNSTORABLE, stated
from toolkit.contract.people import person
from toolkit.contract.rules import EvidenceState
from toolkit.contract.scorecards import Question, Scorecard
from toolkit.database.connection import Database
from toolkit.database.observation_clock import stamp
from toolkit.database.tables import new_id, review_answers, review_draws, review_turns
from toolkit.errors import InvalidField, InvalidFields, InvalidInput, ReviewRefused
from toolkit.log.events import record_event
from toolkit.message import Message

if TYPE_CHECKING:
    from toolkit.audit.folder import Audit

RISK: Final = 3  # a file with a finding about it is so many times as likely to be drawn
CLAIMED_FOR: Final = timedelta(minutes=30)  # the time for which a file is before one person alone


@dataclass(frozen=True, slots=True)
class Drawn:
    """A sample of the files that an audit counted; ``second`` of them two people look at."""

    id: UUID
    as_of: datetime
    seed: int
    strata: list[dict[str, Any]]
    """The files of each ``partner`` and ``evidenceType``: how many could be drawn, and how many were."""
    second: int

    @property
    def files(self) -> int:
        """The number of files."""
        return sum(each["drawn"] for each in self.strata)


@dataclass(frozen=True, slots=True)
class Turn:
    """A file that is before a reviewer, and the questions about it; no earlier answer is in it."""

    id: int
    evidence_id: UUID
    sale_id: str
    partner: str | None
    evidence_type: str
    turn: int
    claimed_until: datetime
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class Reviewed:
    """The outcome of one look: the questions that the file fails, its score, and whether another person looks."""

    evidence_id: UUID
    sale_id: str
    failures: tuple[str, ...]
    score: float | None
    looked_at_again: bool


def draw(
    database: Database,
    audit: Audit,
    card: Scorecard,
    per_partner: int,
    of: Sequence[EvidenceType],
    *,
    seed: int,
    second_share: float,
    drawn_by: str,
) -> Drawn:
    """Draw so many files of each partner and type from those that an audit counted.

    The same seed draws the same files of the same audit: by the SHA-256 of seed and id, those with a finding about
    them ``RISK`` times as likely. What was drawn before in the same version is left out until its acceptance ends.
    ``second_share`` is the share that two people look at.

    Raises:
        InvalidInput: a number is out of its range, no counted file of these types is left, or the scorecard has no
            question about one of them.
    """
    numbers = {type(per_partner), type(seed)} == {int} and type(second_share) in {int, float}
    if not (numbers and 1 <= per_partner <= 10_000 and 0 <= second_share <= 1 and abs(seed) < 1 << 62):
        raise InvalidInput("Draw 1 to 10,000 files, a second share from 0 to 1, and a seed that is an integer.")
    for each in of:
        if not card.questions(each):
            raise InvalidInput("The scorecard {!r} has no question about {}.", card.name, each)
    _, drawn_by = stated(ReviewRefused, "drawn", drawn_by)
    today = database.clock().astimezone(ZoneInfo(audit.facts.timezone)).date()
    with database.transaction() as connection:
        drawn_at = stamp(connection)  # who draws at the same time waits here
        before = list(connection.scalars(_DRAWN_BEFORE, {"today": today}))
        rows = audit.sql(_DRAW, str(seed), list(of), before, per_partner, second_share).to_pylist()
        if not rows:
            raise InvalidInput("No counted file of {} is left to be drawn.", ", ".join(of))
        counted = Counter((row["partner"], row["evidence_type"], row["files"]) for row in rows)
        names = ("partner", "evidenceType", "files", "drawn")
        strata = [dict(zip(names, (*each, number), strict=True)) for each, number in counted.items()]
        drawn = Drawn(new_id(), audit.facts.as_of, seed, strata, sum(row["again"] for row in rows))
        plan = {"perPartner": per_partner, "of": list(of), "secondShare": second_share}
        connection.execute(
            sa.insert(review_draws),
            {"id": drawn.id, "as_of": drawn.as_of, "seed": seed}
            | {"plan": plan | {"risk": RISK, "strata": strata}}
            | {"scorecard": card.model_dump(mode="json", by_alias=True)}
            | {"drawn_by": drawn_by, "drawn_at": drawn_at},
        )
        turns = [_turn(drawn.id, row, turn, drawn_at) for row in rows for turn in range(1, 2 + row["again"])]
        connection.execute(sa.insert(review_turns), turns)
        detail = {"draw": str(drawn.id), "files": drawn.files, "seed": seed, "by": drawn_by}
        record_event(connection, CustodyEvent.REVIEW_DRAWN, drawn_at, detail)
    return drawn


def _turn(draw_id: UUID, row: Mapping[Any, Any], turn: int, now: datetime) -> dict[str, Any]:
    kept = {name: row[name] for name in ("sale_id", "partner", "evidence_type")}
    ids = {"draw_id": draw_id, "evidence_id": UUID(str(row["evidence_id"])), "object_id": row["object"]}
    return ids | kept | {"turn": turn, "added_at": now}


def take_turns(
    database: Database, reviewer: str, *, most: int = 1, claimed_for: timedelta = CLAIMED_FOR
) -> list[Turn]:
    """Hand out the next files to a reviewer, who has them alone for a while; first those that are open already.

    Nobody gets a file that they looked at before, a second look before the first is kept, or a version that is
    gone, withdrawn or no longer that of its record. The sale is the one that the record belongs to now.

    Raises:
        ReviewRefused: the name of the reviewer is missing, or not in Latin letters.
    """
    _, reviewer = stated(ReviewRefused, "review", reviewer)
    now = database.clock()
    until = now + claimed_for
    who = {"person": person(reviewer), "now": now, "until": until, "most": most}
    with database.transaction() as connection:
        found = connection.execute(_TAKE, who).all()
    return [
        Turn(
            *(row.id, row.evidence_id, row.of_sale, row.partner, row.evidence_type, row.turn, until),
            tuple(Scorecard.model_validate(row.scorecard).questions(row.evidence_type)),
        )
        for row in sorted(found, key=lambda row: row.id)
    ]


def open_questions(database: Database) -> set[tuple[str, str]]:
    """Return the id and the text of each question of every scorecard that a file was drawn with."""
    with database.transaction() as connection:
        cards = map(Scorecard.model_validate, connection.scalars(sa.select(review_draws.c.scorecard)))
        return {(question.id, question.text) for card in cards for question in card.question}


def keep_review(
    database: Database,
    bucket: Bucket,
    evidence_id: UUID,
    answers: Mapping[str, str | None],
    *,
    reviewer: str,
    comment: str | None = None,
    timezone: ZoneInfo,
) -> Reviewed:
    """Keep what a reviewer found about the file that is before them; the custody log tells of it.

    Raises:
        InvalidFields: a question is not answered, or not by a mark; each is named.
        ReviewRefused: the file is not before this reviewer, or is not the version any more that was drawn.
    """
    _, reviewer = stated(ReviewRefused, "review", reviewer)
    if UNSTORABLE.search(comment or ""):
        raise InvalidFields([InvalidField("comment", Message("Must not contain control characters"))])
    who = person(reviewer)
    with database.transaction() as connection:
        row = connection.execute(_CLAIMED, {"evidence": evidence_id, "person": who}).mappings().one_or_none()
        if row is None:
            raise ReviewRefused(
                "The file of {} is not before {}, or somebody else has it by now. See: toolkit review next",
                *(evidence_id, reviewer),
            )
        seen = bucket.head(row["key"])
        if seen is None or (seen.etag, seen.size) != (row["etag"], row["size"]):
            raise ReviewRefused(
                "The file of {} is not the version any more that was drawn: nothing was kept. "
                "See: toolkit bucket sync",
                evidence_id,
            )
        card = Scorecard.model_validate(row["scorecard"])
        marks = card.marked(row["evidence_type"], answers)
        failures = card.failures(row["evidence_type"], marks)
        now = stamp(connection)
        ends_on = now.astimezone(timezone).date() + timedelta(days=card.accepted_for_days)
        connection.execute(
            sa.insert(review_answers),
            {"turn_id": row["id"], "reviewer": reviewer, "person": who, "account": database.account}
            | {"answers": marks, "failures": failures, "comment": (comment or "").strip() or None}
            | {"answered_at": now, "ends_on": None if failures else ends_on},
        )
        about = {"evidence": str(evidence_id), "version": row["object_id"], "turn": row["turn"]}
        record_event(connection, CustodyEvent.REVIEWED, now, about | {"failures": failures, "by": reviewer})
        # A further person looks at what is critical, and at what two see otherwise.
        again = bool(failures) if row["turn"] == 1 else row["turn"] == 2 and row["first_failed"] != bool(failures)
        if again:
            following = _turn(row["draw_id"], row, row["turn"] + 1, now)
            connection.execute(insert(review_turns).values(following).on_conflict_do_nothing())
    score = card.score(row["evidence_type"], marks)
    return Reviewed(evidence_id, row["of_sale"], tuple(failures), score, again or row["followed"])


def looks_at(connection: Connection, sale_id: str) -> Sequence[Row[Any]]:
    """Return the looks of people at the files of a sale, oldest first; ``current``: the version is there now."""
    return connection.execute(_LOOKS_AT, {"sale": sale_id}).all()


_DRAWN_BEFORE: Final = sa.text(
    """
    SELECT object_id FROM audit.review_turns AS turn LEFT JOIN audit.review_answers ON turn_id = turn.id
    GROUP BY object_id, draw_id HAVING coalesce(max(ends_on) > :today, TRUE)
    """
)
"""Versions of files that were drawn before, without the draws whose acceptance ended."""

_DRAW: Final = f"""
    WITH odd AS (SELECT DISTINCT unnest(evidence_ids) AS evidence_id FROM file_findings),
    counted AS (
        SELECT files.evidence_id, files.sale_id, files.partner, files.evidence_type, records.object,
               sha256($1 || ':' || files.evidence_id) AS digits, odd.evidence_id IS NOT NULL AS risky
        FROM files JOIN records USING (evidence_id) LEFT JOIN odd USING (evidence_id)
        WHERE files.state = '{EvidenceState.COUNTED}' AND list_contains($2, files.evidence_type)
          AND NOT list_contains(CAST($3 AS BIGINT[]), records.object)
    ),
    keyed AS (
        SELECT *, CAST('0x' || substr(digits, 14, 13) AS BIGINT) / 4503599627370496 < $5 AS again,
               -ln((CAST('0x' || substr(digits, 1, 13) AS BIGINT) + 1) / 4503599627370496)
                   / CASE WHEN risky THEN {RISK} ELSE 1 END AS key
        FROM counted
    )
    SELECT *, count(*) OVER (PARTITION BY partner, evidence_type) AS files
    FROM keyed
    QUALIFY row_number() OVER (PARTITION BY partner, evidence_type ORDER BY key, evidence_id) <= $4
    ORDER BY partner, evidence_type, key, evidence_id
"""
"""Weighted sampling without replacement: the smallest of -ln(u) / weight, u from the SHA-256 of seed and id."""

_TAKE: Final = sa.text(
    """
    WITH free AS (
        SELECT turn.id, record.sale_id AS of_sale FROM audit.review_turns AS turn
        JOIN audit.object_observations AS object ON object.id = turn.object_id AND object.gone_at IS NULL
        JOIN audit.evidence_observations AS record
            ON record.evidence_id = turn.evidence_id AND record.gone_at IS NULL AND object_key = object.key
        WHERE (turn.claimed_until IS NULL OR turn.claimed_until <= :now OR turn.claimed_by = :person)
          AND NOT EXISTS (SELECT FROM audit.review_answers WHERE turn_id = turn.id)
          AND NOT EXISTS (
              SELECT FROM audit.withdrawals
              WHERE evidence_id = turn.evidence_id AND sale_id IN ('', turn.sale_id, record.sale_id)
          )
          AND NOT EXISTS (
              SELECT FROM audit.review_turns AS other LEFT JOIN audit.review_answers ON turn_id = other.id
              WHERE other.draw_id = turn.draw_id AND other.evidence_id = turn.evidence_id
                AND other.turn < turn.turn AND (turn_id IS NULL OR person = :person)
          )
        ORDER BY turn.claimed_by IS DISTINCT FROM :person, turn.turn DESC, turn.id
        LIMIT :most FOR UPDATE OF turn SKIP LOCKED
    )
    UPDATE audit.review_turns AS turn SET claimed_by = :person, claimed_until = :until
    FROM free, audit.review_draws AS draw
    WHERE turn.id = free.id AND draw.id = draw_id RETURNING turn.*, of_sale, scorecard
    """
)

_CLAIMED: Final = sa.text(
    """
    SELECT turn.*, object_id AS object, key, etag, size, scorecard,
           coalesce(record.sale_id, turn.sale_id) AS of_sale,
           EXISTS (
               SELECT FROM audit.review_turns AS first JOIN audit.review_answers AS answer ON turn_id = first.id
               WHERE first.draw_id = turn.draw_id AND first.evidence_id = turn.evidence_id AND first.turn = 1
                 AND failures <> '{}'
           ) AS first_failed,
           EXISTS (
               SELECT FROM audit.review_turns AS later
               WHERE later.draw_id = turn.draw_id AND later.evidence_id = turn.evidence_id
                 AND later.turn > turn.turn
           ) AS followed
    FROM audit.review_turns AS turn
    JOIN audit.review_draws AS draw ON draw.id = draw_id
    JOIN audit.object_observations AS object ON object.id = object_id
    LEFT JOIN audit.evidence_observations AS record
        ON record.evidence_id = turn.evidence_id AND record.gone_at IS NULL
    WHERE turn.evidence_id = :evidence AND claimed_by = :person
      AND NOT EXISTS (SELECT FROM audit.review_answers WHERE turn_id = turn.id)
    ORDER BY turn.id DESC LIMIT 1 FOR UPDATE OF turn
    """
)
"""The look that is before a person, with the version that was drawn: whether the first look at the file failed it,
and whether a further one is planned."""

_LOOKS_AT: Final = sa.text(
    """
    SELECT turn.evidence_id, turn.evidence_type, turn, reviewer, answered_at, failures, ends_on,
           (object.size, object.etag) IN (
               SELECT size, etag FROM audit.object_observations
               WHERE key = record.object_key AND gone_at IS NULL
           ) AS current
    FROM audit.review_turns AS turn JOIN audit.review_answers AS answer ON turn_id = turn.id
    JOIN audit.object_observations AS object ON object.id = object_id
    LEFT JOIN audit.evidence_observations AS record
        ON record.evidence_id = turn.evidence_id AND record.gone_at IS NULL
    WHERE coalesce(record.sale_id, turn.sale_id) = :sale ORDER BY answered_at, turn.id
    """
)


LOOKS: Final = """
    SELECT turn.id, object_id, turn, seed, (plan ->> 'perPartner')::bigint AS per_partner, draw_id, evidence_id,
           sale_id, evidence_type, reviewer, given.key AS question, given.value AS answer,
           (SELECT asked ->> 'text' FROM jsonb_array_elements(scorecard -> 'question') AS asked
            WHERE asked ->> 'id' = given.key) AS words,
           answered_at, as_of AS drawn_from, given.key = ANY (failures) AS critical, ends_on,
           (plan ->> 'secondShare')::double precision AS second_share
    FROM audit.review_turns AS turn
    JOIN audit.review_draws AS draw ON draw.id = draw_id
    LEFT JOIN audit.review_answers AS kept ON turn_id = turn.id AND answered_at <= :moment
    LEFT JOIN LATERAL jsonb_each_text(answers) AS given ON TRUE
    WHERE added_at <= :moment
"""
"""The looks that files needed by a moment: one row an answer, or a look that nobody had by then."""

OTHER: Final = "coalesce({0}.sha256 <> was.sha256, ({0}.size, {0}.etag) <> (was.size, was.etag))"
"""Tells that an object has other contents than ``was``, another one that a record named."""

REVIEWS: Final = f"""
    CREATE OR REPLACE TABLE review AS
    WITH looked AS (
        SELECT look.* REPLACE (coalesce(record.sale_id, look.sale_id) AS sale_id),
               withdrawn_at IS NULL AND coalesce(record.object = object_id OR NOT {OTHER.format("now")}, false)
                   AS standing
        FROM look
        LEFT JOIN record ON record.evidence_id = look.evidence_id
        LEFT JOIN version AS was ON was.id = object_id
        LEFT JOIN version AS now ON now.id = record.object
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
