"""People look at files: the questions, what is drawn, who gets which file, and what their answers count for."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from hashlib import sha256
from math import log
from types import SimpleNamespace

import pandas as pd
import pytest

from tests.support.uploaded_sales import MONDAY, MP3, PDF, WHEN, add_record, add_sale, execute, rows, unguarded
from toolkit.contract.scorecards import Mark, read_scorecard
from toolkit.errors import InvalidFields, InvalidInput, ReviewRefused
from toolkit.jobs.runs import critical_findings
from toolkit.kit.connection import Kit
from toolkit.reports.reading import interval, kappa

CARD = """
name = "Calls"
accepted-for-days = 30

[[question]]
id = "agrees"
text = "Does the client say yes?"
of = ["POV"]
weight = 3
critical = ["no"]

[[question]]
id = "heard"
text = "Can they be heard?"
of = ["POV"]
"""

YES = {"agrees": "yes", "heard": "yes"}
NO = {"agrees": "no", "heard": "yes"}


@pytest.fixture
def office(embedded_environment, database, bucket, s3, tmp_path, clock):
    """Two partners with three recordings each, audited; the clock can be moved."""
    card = tmp_path / "card.toml"
    card.write_text(CARD)
    environ = {**embedded_environment, "TOOLKIT_SCORECARD": str(card), "TOOLKIT_LANGUAGE": "en"}
    clock.now = MONDAY
    evidence = {}
    for number in range(6):
        sale = add_sale(database, f"V-{number}", partner="Norte" if number % 2 else "Sul")
        for kind, body in (("POV", MP3), ("DOC_CONTRATANTE", PDF)):
            evidence[sale, kind] = _, key = add_record(database, sale, kind, **WHEN)
            s3.put_object(Bucket=bucket.name, Key=key, Body=body + f"{number}".encode() * 8)
    with Kit(environ, clock=clock) as kit:
        kit.audit(verify=False)
        yield SimpleNamespace(kit=kit, clock=clock, environ=environ, evidence=evidence, card=card)


def looked(office, reviewer, severe=()):
    """Let a reviewer look at everything that is left for them, and say no about some sales; the sales in order."""
    desk, sales = office.kit.desk(reviewer), []
    while turns := desk.next().result:
        desk.record(turns[0].evidence_id, NO if turns[0].sale_id in severe else YES)
        sales.append(turns[0].sale_id)
    return sales


def codes(office):
    office.clock.now += timedelta(days=1)
    return {
        each["sale_id"]
        for each in office.kit.audit(verify=False).findings.to_dict("records")
        if each["code"] == "REVIEW_FAILED" and each["status"] == "open"
    }


def test_a_sample_has_so_many_files_of_each_partner_and_none_that_was_drawn_before(office):
    drawn = office.kit.draw_review(per_partner=2, seed=7, second_share=0).document
    assert drawn["strata"] == [
        {"partner": partner, "evidenceType": "POV", "files": 3, "drawn": 2} for partner in ("Norte", "Sul")
    ]
    assert drawn["asOf"] == "2026-03-02T09:00:00-03:00"
    kept = office.kit.audit(verify=False).sql(
        "SELECT DISTINCT drawn_from, seed, per_partner, second_share FROM reviews"
    )
    assert kept.values.tolist() == [[MONDAY, 7, 2, 0]]
    # What was drawn is not drawn again; the third of each partner is left.
    assert office.kit.draw_review(per_partner=2, seed=7, second_share=0).result.files == 2
    with pytest.raises(InvalidInput, match="No counted file of POV is left"):
        office.kit.draw_review(seed=8)


def test_a_file_with_a_finding_is_three_times_as_likely_to_be_drawn(office, database, put):
    """Whoever has the seed and the ids draws the same: the smallest of -ln(u) / weight."""
    for sale in ("V-0", "V-1"):
        _, key = office.evidence[sale, "POV"]
        put(key, MP3 + b"one call of two sales")
    odd = office.kit.audit(verify=False).sql("SELECT unnest(evidence_ids) AS id FROM file_findings").id.tolist()
    calls = [[office.evidence[f"V-{number}", "POV"][0] for number in range(of, 6, 2)] for of in (0, 1)]
    assert [sum(str(record) in odd for record in records) for records in calls] == [1, 1]

    def order(seed, record):
        u = (int(sha256(f"{seed}:{record}".encode()).hexdigest()[:13], 16) + 1) / 2**52
        return -log(u) / (3 if str(record) in odd else 1)

    for seed in range(20):
        office.kit.draw_review(per_partner=1, seed=seed, second_share=0)
        drawn = {record for (record,) in rows(database, "SELECT evidence_id FROM audit.review_turns")}
        for table in ("review_turns", "review_draws"):
            unguarded(database, table, f"DELETE FROM audit.{table}")
        assert drawn == {min(records, key=lambda record: order(seed, record)) for records in calls}


def test_a_file_is_before_one_person_alone_and_is_free_again_when_the_time_is_over(office):
    office.kit.draw_review(per_partner=1, second_share=0)
    ana, rui = office.kit.desk("Ana Souza"), office.kit.desk("Rui Lima")
    [hers], [his] = ana.next().result, rui.next().result
    assert hers.evidence_id != his.evidence_id
    assert ana.next().result[0].evidence_id == hers.evidence_id
    assert office.kit.desk("Eva Reis").next().result == []

    office.clock.now += timedelta(minutes=31)
    assert office.kit.desk("Eva Reis").next(most=5).result != []
    with pytest.raises(ReviewRefused, match="is not before Ana Souza"):
        ana.record(hers.evidence_id, YES)


def test_two_that_ask_at_the_same_time_get_other_files(office):
    office.kit.draw_review(per_partner=3, second_share=0)
    names = ["Ana Souza", "Rui Lima", "Eva Reis", "Ivo Melo"]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda name: office.kit.desk(name).next().result[0].evidence_id, names))
    assert len(set(found)) == len(names)


def test_a_critical_answer_is_looked_at_again_and_a_third_decides(office):
    office.kit.draw_review(per_partner=1, second_share=0)
    shown = office.kit.desk("Ana Souza").next()
    first = shown.result[0]
    assert office.kit.sale(first.sale_id).parts[0].text in str(shown)
    kept = office.kit.desk("Ana Souza").record(first.evidence_id, NO).result
    assert (kept.failures, kept.looked_at_again, round(kept.score, 2)) == (("agrees",), True, 0.25)
    assert codes(office) == {first.sale_id}

    # She is not asked twice, whatever she calls herself; the second person does not see her answer.
    assert first.evidence_id not in [each.evidence_id for each in office.kit.desk("ANA  SOUZÁ").next().result]
    office.clock.now += timedelta(hours=1)
    again = office.kit.desk("Rui Lima").next().result[0]
    assert (again.evidence_id, again.turn) == (first.evidence_id, 2)
    assert "agrees" in {each.id for each in again.questions}
    assert office.kit.desk("Rui Lima").record(again.evidence_id, YES).result.looked_at_again
    assert codes(office) == {first.sale_id}

    third = office.kit.desk("Eva Reis").next().result[0]
    assert (third.evidence_id, third.turn) == (first.evidence_id, 3)
    office.kit.desk("Eva Reis").record(third.evidence_id, YES)
    assert codes(office) == set()


def test_a_review_fails_the_version_that_was_looked_at_and_ends_with_its_withdrawal(office, put):
    office.kit.draw_review(per_partner=3, second_share=0)
    every = {f"V-{number}" for number in range(6)}
    looked(office, "Ana Souza", every)
    looked(office, "Rui Lima", every)
    assert codes(office) == every
    office.kit.add_waiver(sale="V-5", reason="asked", owner="ana", approvedBy="rui", end="2026-12-31")

    record, _ = office.evidence["V-0", "POV"]
    office.kit.withdraw(record, reason="says no", by="Ana Souza", approved_by="Rui Lima")
    _, key = office.evidence["V-1", "POV"]
    put(key, MP3 + b"another")
    _, key = office.evidence["V-2", "POV"]
    put(key, MP3 + b"2" * 8)  # the same file sent again
    assert codes(office) == {f"V-{number}" for number in range(2, 5)}
    assert critical_findings(office.kit, "nightly") == (4, 4)  # V-1 is OVERWRITTEN
    assert [office.kit.sale(sale).document["reviews"][0]["current"] for sale in ("V-1", "V-2")] == [False, True]


def test_numbers_that_no_audit_could_read_back_are_refused(office):
    for wrong in ({"per_partner": 1.5}, {"per_partner": True}, {"seed": 1.5}, {"second_share": True}):
        with pytest.raises(InvalidInput, match="Draw 1 to 10,000 files"):
            office.kit.draw_review(**wrong)


def test_an_acceptance_ends(office):
    office.kit.draw_review(per_partner=3, second_share=0)
    assert len(looked(office, "Ana Souza")) == 6
    office.clock.now += timedelta(days=29)
    assert office.kit.audit(verify=False).numbers.reviews.accepted == 6
    with pytest.raises(InvalidInput, match="is left to be drawn"):
        office.kit.draw_review(per_partner=3)
    office.clock.now += timedelta(days=1)
    assert office.kit.audit(verify=False).numbers.reviews.accepted == 0
    assert office.kit.draw_review(per_partner=3).result.files == 6
    with pytest.raises(InvalidInput, match="is left to be drawn"):  # nobody has looked at them again yet
        office.kit.draw_review(per_partner=3)


def test_the_report_tells_shares_with_intervals_agreement_and_what_nobody_looked_at(office, tmp_path):
    office.kit.draw_review(per_partner=2, seed=3, second_share=1)
    looked(office, "Ana Souza", {"V-1", "V-3", "V-5"})  # those of Norte
    looked(office, "Rui Lima")
    office.clock.now += timedelta(days=1)
    audit = office.kit.audit(verify=False)
    audit.report(tmp_path / "reports", formats="json,html,xlsx,pdf")
    told = json.loads((tmp_path / "reports" / "missing-evidence.json").read_text("utf-8"))["reviews"]
    assert (told["files"], told["drawn"], told["lookedAt"], told["failed"]) == (12, 4, 4, 2)
    assert all(isinstance(each["drawn"], int | None) for each in told["questions"])
    rows_of = {(each["partner"], each["question"]): each for each in told["questions"]}
    every = rows_of["Norte", None]
    assert (every["drawn"], every["lookedAt"], every["failed"], every["share"]) == (2, 2, 2, 1.0)
    assert (round(every["low"], 3), every["high"]) == (0.342, 1.0)
    assert rows_of["Sul", "Does the client say yes?"]["failed"] == 0
    agreed = {(each["question"], each["reviewer"]): each for each in told["agreement"]}
    ana = agreed["Does the client say yes?", "Ana Souza"]
    assert (ana["compared"], ana["agreed"], ana["kappa"]) == (4, 0.5, 0.0)
    page = (tmp_path / "reports" / "missing-evidence.html").read_text("utf-8")
    assert "People looked at 4 of 12 counted files; at 67% of them nobody ever looked." in page

    audit.report(tmp_path / "own", partner="Sul", formats="json")
    theirs = (tmp_path / "own" / "missing-evidence.json").read_text("utf-8")
    assert "Ana Souza" not in theirs
    assert {each["partner"] for each in json.loads(theirs)["reviews"]["questions"]} == {"Sul"}


def test_what_was_answered_cannot_be_changed_and_the_log_tells_of_it(office, database):
    office.kit.draw_review(per_partner=1, second_share=0)
    turn = office.kit.desk("Ana Souza").next().result[0]
    office.kit.desk("Ana Souza").record(turn.evidence_id, NO, comment="declines")
    with pytest.raises(ReviewRefused):
        office.kit.desk("Ana Souza").record(turn.evidence_id, YES)
    [(detail,)] = rows(database, "SELECT detail FROM audit.custody_events WHERE kind = 'REVIEWED'")
    assert (detail["evidence"], detail["failures"]) == (str(turn.evidence_id), ["agrees"])
    assert "Ana" not in json.dumps(detail)

    assert "failed: agrees" in repr(office.kit.sale(turn.sale_id))


def test_an_answer_about_a_file_that_was_replaced_meanwhile_is_not_kept(office, database, put):
    office.kit.draw_review(per_partner=1, second_share=0)
    turn = office.kit.desk("Ana Souza").next().result[0]
    _, key = office.evidence[turn.sale_id, "POV"]
    put(key, MP3 + b"another")
    with pytest.raises(ReviewRefused, match="not the version any more that was drawn"):
        office.kit.desk("Ana Souza").record(turn.evidence_id, YES)
    assert rows(database, "SELECT count(*) FROM audit.review_answers") == [(0,)]


def test_a_file_that_its_record_names_no_longer_is_before_nobody(office, database):
    office.kit.draw_review(per_partner=1, second_share=0)
    first, second = office.kit.desk("Ana Souza").next(most=2).result
    execute(database, f"UPDATE evidences SET object_key = 'another' WHERE id = '{first.evidence_id}'")
    execute(database, f"DELETE FROM evidences WHERE id = '{second.evidence_id}'")
    office.kit.audit(verify=False)
    assert office.kit.desk("Ana Souza").next().result == []


def test_a_record_that_moved_is_looked_at_as_of_the_sale_that_it_belongs_to(office, database):
    office.kit.draw_review(per_partner=2, second_share=0)
    drawn = [turn.evidence_id for turn in office.kit.desk("Ana Souza").next(most=3).result]
    add_sale(database, "V-9", partner="Sul")
    office.kit.withdraw(drawn[1], reason="says no", by="Ana Souza", approved_by="Rui Lima")
    execute(database, *(f"UPDATE evidences SET sale_id = 'V-9' WHERE id = '{each}'" for each in drawn))
    office.kit.audit(verify=False)
    office.kit.withdraw(drawn[2], reason="says no", by="Ana Souza", approved_by="Rui Lima")
    shown = office.kit.desk("Ana Souza").next(most=3)
    assert (drawn[0], "V-9") in [(turn.evidence_id, turn.sale_id) for turn in shown.result]
    assert not {*drawn[1:]} & {turn.evidence_id for turn in shown.result}
    assert office.kit.desk("Ana Souza").record(drawn[0], NO, comment="says no").document["saleId"] == "V-9"
    [look] = office.kit.sale("V-9").document["reviews"]
    assert (look["reviewer"], look["failures"]) == ("Ana Souza", ["agrees"])
    assert codes(office) == {"V-9"}
    looked_at = office.kit.last_audit().sql("SELECT DISTINCT sale_id FROM reviews WHERE failed").to_pylist()
    assert looked_at == [{"sale_id": "V-9"}]
    office.kit.privacy.erase(sale_ids=["V-9"], basis="asked", by="Ana Souza", approved_by="Rui Lima")
    assert rows(database, "SELECT comment FROM audit.review_answers") == [(None,)]


def test_the_scorecard_of_the_package_asks_about_every_type():
    assert len(read_scorecard(None).types) == 6


def test_a_file_fails_by_a_critical_answer_and_its_score_leaves_out_what_does_not_apply(tmp_path):
    (card := tmp_path / "card.toml").write_text(
        CARD.replace('heard?"\nof = ["POV"]', 'heard?"\nof = ["POV", "AUT"]')
    )
    asked = read_scorecard(card)
    marks = asked.marked("POV", {"agrees": "no", "heard": "yes"})
    assert (asked.failures("POV", marks), asked.score("POV", marks)) == (["agrees"], 0.25)
    assert asked.score("POV", marks | {"agrees": Mark.NOT_APPLICABLE}) == 1
    assert asked.score("AUT", {"heard": Mark.NOT_APPLICABLE}) is None
    with pytest.raises(InvalidFields) as wrong:
        asked.marked("AUT", {"agrees": "yes"})
    assert [each.field for each in wrong.value.invalid] == ["agrees", "heard"]


def test_an_interval_is_wilsons():
    """The bounds are those of Newcombe (1998), table I, for 81 of 263 and 0 of 20."""
    assert [round(each, 4) for each in interval(81, 263)] == [0.308, 0.2553, 0.3662]
    assert [round(each, 4) for each in interval(0, 20)] == [0, 0, 0.1611]
    assert interval(0, 0) == (None, None, None)
    assert all(interval(0, number)[1] == 0 == 1 - interval(number, number)[2] for number in range(1, 100))


def test_kappa_takes_away_what_agrees_by_chance():
    """20 times both yes, 15 times both no, 5 and 10 times one of them: Cohen's kappa is 0.4."""
    answers = [("yes", "yes")] * 20 + [("yes", "no")] * 5 + [("no", "yes")] * 10 + [("no", "no")] * 15
    assert kappa(pd.DataFrame(answers, columns=["own", "other"])) == pytest.approx(0.4)
    assert kappa(pd.DataFrame([("yes", "yes")], columns=["own", "other"])) is None
