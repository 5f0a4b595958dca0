"""Scorecards: the questions of a company, and the mistakes in them; what many answers say together."""

import re

import pandas as pd
import pytest

from toolkit.contract.scorecards import Mark, read_scorecard
from toolkit.errors import InvalidFields, SettingsError, UnreadableFile
from toolkit.reports.reviews import interval, kappa

CARD = """name = "Calls"

[[question]]
id = "agrees"
text = "Does the client say yes?"
of = ["POV"]
weight = 3
critical = ["no"]

[[question]]
id = "heard"
text = "Can they be heard?"
of = ["POV", "AUT"]
"""


def card(tmp_path, text=CARD):
    place = tmp_path / "card.toml"
    place.write_text(text)
    return read_scorecard(place)


def test_the_scorecard_of_the_package_asks_about_every_type():
    assert len(read_scorecard(None).types) == 6


def test_a_file_fails_by_a_critical_answer_and_its_score_leaves_out_what_does_not_apply(tmp_path):
    asked = card(tmp_path)
    marks = asked.marked("POV", {"agrees": "no", "heard": "yes"})
    assert (asked.failures("POV", marks), asked.score("POV", marks)) == (["agrees"], 0.25)
    assert asked.score("POV", marks | {"agrees": Mark.NOT_APPLICABLE}) == 1
    assert asked.score("AUT", {"heard": Mark.NOT_APPLICABLE}) is None
    with pytest.raises(InvalidFields) as wrong:
        asked.marked("AUT", {"agrees": "yes"})
    assert [each.field for each in wrong.value.invalid] == ["agrees", "heard"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            CARD.replace('"POV"]\nweight', '"SONG"]\nweight'),
            r"card.toml, line 6: question.1.of.1: Must be one of",
        ),
        (CARD.replace('"heard"', '"agrees"'), r"card.toml, line 11: id: the question agrees stands there twice"),
        (
            CARD.replace("weight = 3", "weight = 0") + "weight = 0\n",
            r"line 7: weight: the weights for POV add up to",
        ),
        (CARD.replace("weight = 3", "wait = 3"), r"card.toml, line 7: question.1.wait: there is no such key"),
        (
            CARD.replace('text = "Can they be heard?"\n', ""),
            r"card.toml, line 10: question.2.text: Required",
        ),
        ('name = "Calls"\n', r"card.toml, line 1: question: Required"),
        (CARD.replace("[[question]]", "[[questions]]"), r"card.toml, line 3: questions: there is no such key"),
        (CARD.replace("weight = 3", "weight = true"), r"line 7: question.1.weight: Must be a whole number"),
        (CARD.replace('["no"]', '"no"'), r"line 8: question.1.critical: Must be a list"),
    ],
)
def test_a_mistake_names_the_file_the_line_and_the_field(tmp_path, text, told):
    with pytest.raises(SettingsError) as wrong:
        card(tmp_path, text)
    assert re.search(told, str(wrong.value)), str(wrong.value)


def test_what_is_no_toml_is_said(tmp_path):
    with pytest.raises(UnreadableFile, match="cannot be read as a TOML file"):
        card(tmp_path, "name = ")
    with pytest.raises(UnreadableFile, match="No such file"):
        read_scorecard(tmp_path / "none.toml")


def test_an_interval_is_wilsons():
    """The bounds are those of Newcombe (1998), table I, for 81 of 263 and 0 of 20."""
    assert [round(each, 4) for each in interval(81, 263)] == [0.308, 0.2553, 0.3662]
    assert [round(each, 4) for each in interval(0, 20)] == [0, 0, 0.1611]
    assert interval(0, 0) == (None, None, None)


def test_kappa_takes_away_what_agrees_by_chance():
    """20 times both yes, 15 times both no, 5 and 10 times one of them: Cohen's kappa is 0.4."""
    answers = [("yes", "yes")] * 20 + [("yes", "no")] * 5 + [("no", "yes")] * 10 + [("no", "no")] * 15
    assert kappa(pd.DataFrame(answers, columns=["own", "other"])) == pytest.approx(0.4)
    assert kappa(pd.DataFrame([("yes", "yes")], columns=["own", "other"])) is None
