"""The minimum-evidence rules, read as a table: who pays and evidence on the left, verdict on the right.

``POV`` stands for a counted file; ``POV?`` for one that is not uploaded yet, ``POV~`` for credentials that
ran out, ``POV!`` for an unusable file, ``POV-`` for one that vanished, ``POV/`` for a withdrawn record. ``DC``,
``DR`` and ``DCR`` are the documents of the contracting party, of the financially responsible person, and of both.
"""

from datetime import UTC, datetime, timedelta

import pandas as pd
import pytest

from tests.support.audit_results import SHORT, states
from toolkit.audit.findings import _LISTED, as_listed
from toolkit.contract.codes import (
    CODES,
    REQUEST_OVERDUE,
    SALE_GONE,
    WITHOUT_CLIENT,
    WRONG_KIND,
    Severity,
    Subject,
    missing_code,
)
from toolkit.contract.contents import ContentProblem, IntegrityProblem
from toolkit.contract.evidence import EvidenceType, FileKind, UtilityGroup
from toolkit.contract.findings import Problem, Reason
from toolkit.contract.rules import GROUP_RULES, Evidence, EvidenceState, Sale, evaluate, evidence_state, ran_out
from toolkit.contract.service_rows import JUMPS, code_of
from toolkit.errors import InvalidInput


def told(found):
    shorts = {kind: name for name, kind in SHORT.items()}
    missing = [f"{shorts.get(p.evidence_type, p.evidence_type)}:{p.reason}" for p in found.missing]
    return " ".join([found.status, *missing, *found.problems])


def verdict(text, *, payer="same", group="A"):
    sale = Sale(group, *PAYERS[payer])
    return told(evaluate(sale, [Evidence(*each) for each in states(text)]))


PAYERS = {
    "same": (True, False),
    "other": (False, False),
    "nobody": (None, False),
    "same, completed": (True, True),
    "nobody, completed": (None, True),
}
"""Whether the client pays, and whether the sale is completed."""

VERDICTS = """
same              |                   | incomplete POV:NEVER_REQUESTED DC:NEVER_REQUESTED
same              | POV DC            | compliant
same              | POV DCR           | compliant
same              | POV DC AUT DR     | compliant
same              | POV DC DCR        | compliant DOCUMENT_REDUNDANT
same              | POV               | incomplete DC:NEVER_REQUESTED
same              | DC                | incomplete POV:NEVER_REQUESTED
same              | POV DR            | incomplete DC:NEVER_REQUESTED
same              | POV? DC~          | incomplete POV:NOT_UPLOADED DC:EXPIRED
same              | POV! POV? POV~ DC | incomplete POV:UNUSABLE
same              | POV! POV- POV? DC | incomplete POV:UNUSABLE
same              | POV- POV? POV~ DC | incomplete POV:VANISHED
same              | POV? POV~ DC      | incomplete POV:NOT_UPLOADED
same              | POV DC~ DCR?      | incomplete DC:NOT_UPLOADED
same              | POV DC~ DCR!      | incomplete DC:UNUSABLE
same              | POV POV! DC       | compliant
same              | KYC               | compliant
same              | KYC?              | incomplete POV:NEVER_REQUESTED DC:NEVER_REQUESTED
same              | KYC POV? DC~      | compliant
same              | KYC POV           | conflict KYC_NOT_ALONE
same              | KYC KYC           | conflict KYC_REPEATED
same              | KYC KYC DC        | conflict KYC_NOT_ALONE KYC_REPEATED
same              | KYC DC DCR        | conflict KYC_NOT_ALONE DOCUMENT_REDUNDANT
same              | KYC KYC!          | compliant
same              | POV/ DC           | incomplete POV:WITHDRAWN
same              | POV/ POV~ DC      | incomplete POV:EXPIRED
same              | KYC/ POV DC       | compliant
same              | VOZ!              | incomplete POV:TYPE_UNKNOWN DC:TYPE_UNKNOWN TYPE_UNKNOWN
same              | POV DC VOZ?       | compliant TYPE_UNKNOWN
same              | KYC pov!          | conflict TYPE_UNKNOWN
same              | KYC pov~          | compliant TYPE_UNKNOWN
same              | KYC pov/          | compliant
same              | POV/ DOC!         | incomplete POV:WITHDRAWN DC:TYPE_UNKNOWN TYPE_UNKNOWN
other             | POV DC            | incomplete AUT:NEVER_REQUESTED DR:NEVER_REQUESTED
other             | POV AUT DC DR     | compliant
other             | POV AUT DCR       | compliant
other             | POV AUT DCR DR    | compliant DOCUMENT_REDUNDANT
other             | POV AUT DC        | incomplete DR:NEVER_REQUESTED
other             | POV AUT DCR~      | incomplete DC:EXPIRED DR:EXPIRED
other             | POV AUT DC DCR?   | incomplete DR:NOT_UPLOADED
other             | KYC               | compliant
nobody            | POV DC AUT DR     | conflict PAYER_UNKNOWN
nobody            | KYC               | compliant
same, completed   | POV               | incomplete DC:NEVER_REQUESTED COMPLETED_WITHOUT_EVIDENCE
same, completed   | KYC KYC           | conflict COMPLETED_WITHOUT_EVIDENCE KYC_REPEATED
same, completed   | KYC               | compliant
nobody, completed |                   | conflict COMPLETED_WITHOUT_EVIDENCE PAYER_UNKNOWN
"""

CASES = [[each.strip() for each in line.split("|")] for line in VERDICTS.strip("\n").split("\n")]


@pytest.mark.parametrize("group", list(UtilityGroup))
@pytest.mark.parametrize(("payer", "given", "expected"), CASES)
def test_the_verdict_follows_from_payer_and_evidence_alike_in_every_group(payer, given, expected, group):
    assert verdict(given, payer=payer, group=group) == expected


@pytest.mark.parametrize("group", ["E", "a", "", "AB"])
def test_a_group_without_a_rule_is_a_conflict(group):
    assert verdict("POV DC", group=group) == "conflict GROUP_UNKNOWN"
    assert verdict("KYC POV", group=group) == "conflict GROUP_UNKNOWN KYC_NOT_ALONE"


def test_a_payer_is_no_text_which_would_count_as_true():
    with pytest.raises(InvalidInput, match="never 'N'"):
        Sale("A", "N")


@pytest.mark.parametrize(
    ("size", "kind", "damaged", "expired", "state"),
    [
        (None, None, False, False, EvidenceState.NOT_UPLOADED),
        (None, None, False, None, EvidenceState.EXPIRY_UNKNOWN),
        (None, None, False, True, EvidenceState.EXPIRED),
        (1, None, False, True, EvidenceState.COUNTED),  # not examined yet: it counts
        (1, FileKind.AUDIO, False, False, EvidenceState.COUNTED),
        (1, FileKind.PDF, False, False, EvidenceState.UNUSABLE),
        (1, FileKind.OTHER, False, False, EvidenceState.UNUSABLE),
        (1, FileKind.AUDIO, True, False, EvidenceState.UNUSABLE),
        (0, None, False, False, EvidenceState.UNUSABLE),
    ],
)
def test_the_state_of_a_record(size, kind, damaged, expired, state):
    found = {"size": size, "kind": kind, "damaged": damaged, "expired": expired}
    assert evidence_state(EvidenceType.POV, **found) is state
    seen_before = EvidenceState.VANISHED if size is None else state
    assert evidence_state(EvidenceType.POV, **found, vanished=True) is seen_before


def test_credentials_have_run_out_from_the_moment_of_their_end_on():
    end = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)
    assert [ran_out(end, end + timedelta(microseconds=late)) for late in (-1, 0, 1)] == [False, True, True]


def test_a_state_is_one_of_the_rules():
    with pytest.raises(ValueError, match="'counted' is not a valid EvidenceState"):
        Evidence("POV", "counted")


def test_every_code_that_can_be_given_is_in_the_catalogue_and_no_other():
    given = {*Problem, *Reason, *IntegrityProblem, *ContentProblem}
    given |= {missing_code(each.named) for rule in GROUP_RULES.values() for each in rule}
    given |= {*map(code_of, JUMPS), REQUEST_OVERDUE, WITHOUT_CLIENT, WRONG_KIND, SALE_GONE}

    assert given == set(CODES)


def test_every_finding_has_a_weight_an_owner_and_a_deadline():
    findings = [code for code in CODES.values() if code.severity]

    assert all(code.owner and code.deadline for code in findings)
    for subject in (Subject.SALE, Subject.FILE, Subject.SERVICE):
        weights = [list(Severity).index(code.severity) for code in findings if code.subject is subject]
        assert weights == sorted(weights)


def test_every_code_is_listed_and_explained_by_the_command(run):
    listed = run("explain", within={}).out
    for code in CODES:
        told = run("explain", code.lower(), "--json", within={}).told
        assert (told["code"], *map(bool, map(told.get, ("meaning", "remedy", "section")))) == (code, *[True] * 3)
        assert code in listed


def test_a_finding_has_its_remedy_where_texts_are_those_of_older_pandas():
    row = dict.fromkeys((*_LISTED, "reason")) | {"code": Problem.KYC_REPEATED}
    with pytest.warns(DeprecationWarning, match="infer_string"), pd.option_context("future.infer_string", False):
        listed = as_listed(pd.DataFrame([row]))
    assert listed["remedy"].tolist() == [CODES[Problem.KYC_REPEATED].remedy]
