"""The minimum-evidence rules, read as a table: evidence on the left, verdict on the right.

``POV`` stands for a counted file; ``POV?`` for one that is not uploaded yet, ``POV~`` for credentials that
ran out, ``POV!`` for an unusable file. ``DC``, ``DR`` and ``DCR`` are the documents of the contracting
party, of the financially responsible person, and of both.
"""

from datetime import UTC, datetime, timedelta

import pytest

from tests.support.audit_results import SHORT, states
from toolkit.contract.evidence import EvidenceType, FileKind, UtilityGroup
from toolkit.contract.rules import Evidence, EvidenceState, Sale, evaluate, evidence_state, ran_out


def told(found):
    shorts = {kind: name for name, kind in SHORT.items()}
    missing = [f"{shorts.get(p.evidence_type, p.evidence_type)}:{p.reason}" for p in found.missing]
    return " ".join([found.status, *missing, *found.problems])


def verdict(text, *, same_payer, group="A", completed=False):
    return told(evaluate(Sale(group, same_payer, completed), [Evidence(*each) for each in states(text)]))


SAME_PAYER = """
                  | incomplete POV:NEVER_REQUESTED DC:NEVER_REQUESTED
POV DC            | compliant
POV DCR           | compliant
POV DC AUT DR     | compliant
POV DC DCR        | compliant DOCUMENT_REDUNDANT
POV               | incomplete DC:NEVER_REQUESTED
DC                | incomplete POV:NEVER_REQUESTED
POV DR            | incomplete DC:NEVER_REQUESTED
POV? DC~          | incomplete POV:NOT_UPLOADED DC:EXPIRED
POV! POV? POV~ DC | incomplete POV:UNUSABLE
POV! POV- POV? DC | incomplete POV:UNUSABLE
POV- POV? POV~ DC | incomplete POV:VANISHED
POV? POV~ DC      | incomplete POV:NOT_UPLOADED
POV DC~ DCR?      | incomplete DC:NOT_UPLOADED
POV DC~ DCR!      | incomplete DC:UNUSABLE
POV POV! DC       | compliant
KYC               | compliant
KYC?              | incomplete POV:NEVER_REQUESTED DC:NEVER_REQUESTED
KYC POV? DC~      | compliant
KYC POV           | conflict KYC_NOT_ALONE
KYC KYC           | conflict KYC_REPEATED
KYC KYC DC        | conflict KYC_NOT_ALONE KYC_REPEATED
KYC DC DCR        | conflict KYC_NOT_ALONE DOCUMENT_REDUNDANT
KYC KYC!          | compliant
"""

SEPARATE_PAYER = """
POV DC            | incomplete AUT:NEVER_REQUESTED DR:NEVER_REQUESTED
POV AUT DC DR     | compliant
POV AUT DCR       | compliant
POV AUT DCR DR    | compliant DOCUMENT_REDUNDANT
POV AUT DC        | incomplete DR:NEVER_REQUESTED
POV AUT DCR~      | incomplete DC:EXPIRED DR:EXPIRED
POV AUT DC DCR?   | incomplete DR:NOT_UPLOADED
KYC               | compliant
"""


CASES = [
    (*map(str.strip, line.split("|")), same_payer)
    for table, same_payer in ((SAME_PAYER, True), (SEPARATE_PAYER, False))
    for line in table.strip("\n").split("\n")
]


@pytest.mark.parametrize("group", list(UtilityGroup))
@pytest.mark.parametrize(("given", "expected", "same_payer"), CASES)
def test_the_verdict_follows_from_evidence_and_payer_alike_in_every_group(given, expected, same_payer, group):
    assert verdict(given, same_payer=same_payer, group=group) == expected


@pytest.mark.parametrize("group", ["E", "a", "", "AB"])
def test_a_group_without_a_rule_is_a_conflict(group):
    assert verdict("POV DC", same_payer=True, group=group) == "conflict GROUP_UNKNOWN"
    assert verdict("KYC POV", same_payer=True, group=group) == "conflict GROUP_UNKNOWN KYC_NOT_ALONE"


def test_a_sale_that_nobody_is_known_to_pay_is_a_conflict_until_a_kyc_is_there():
    everything = "POV DC AUT DR"
    assert verdict(everything, same_payer=None) == "conflict PAYER_UNKNOWN"
    assert verdict("", same_payer=None, completed=True) == "conflict COMPLETED_WITHOUT_EVIDENCE PAYER_UNKNOWN"
    assert verdict("KYC", same_payer=None) == "compliant"


def test_a_completed_sale_that_is_not_compliant_is_the_gravest_finding():
    completed = {
        "POV": "incomplete DC:NEVER_REQUESTED COMPLETED_WITHOUT_EVIDENCE",
        "KYC KYC": "conflict COMPLETED_WITHOUT_EVIDENCE KYC_REPEATED",
        "KYC": "compliant",
    }
    assert {text: verdict(text, same_payer=True, completed=True) for text in completed} == completed


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


@pytest.mark.parametrize(
    ("records", "said"),
    [
        ([("VOZ", "UNUSABLE")], "incomplete POV:TYPE_UNKNOWN DC:TYPE_UNKNOWN TYPE_UNKNOWN"),
        ([("POV", "COUNTED"), ("DOC_CONTRATANTE", "COUNTED"), ("VOZ", "NOT_UPLOADED")], "compliant TYPE_UNKNOWN"),
        ([("KYC", "COUNTED"), ("pov", "UNUSABLE")], "conflict TYPE_UNKNOWN"),
        ([("KYC", "COUNTED"), ("pov", "EXPIRED")], "compliant TYPE_UNKNOWN"),
        ([("KYC", "COUNTED"), ("pov", "WITHDRAWN")], "compliant"),
        ([("POV", "WITHDRAWN"), ("DOC_CONTRATANTE", "COUNTED")], "incomplete POV:WITHDRAWN"),
        ([("POV", "WITHDRAWN"), ("POV", "EXPIRED"), ("DOC_CONTRATANTE", "COUNTED")], "incomplete POV:EXPIRED"),
        ([("POV", "WITHDRAWN"), ("DOC", "UNUSABLE")], "incomplete POV:WITHDRAWN DC:TYPE_UNKNOWN TYPE_UNKNOWN"),
        ([("KYC", "WITHDRAWN"), ("POV", "COUNTED"), ("DOC_CONTRATANTE", "COUNTED")], "compliant"),
    ],
)
def test_unknown_types_are_never_silent_and_withdrawn_records_explain(records, said):
    given = [Evidence(kind, EvidenceState(state)) for kind, state in records]
    assert told(evaluate(Sale("A", True), given)) == said
