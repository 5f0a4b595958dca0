"""Every code that anything can give is explained in one catalogue."""

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
from toolkit.contract.findings import Problem, Reason
from toolkit.contract.rules import GROUP_RULES
from toolkit.contract.service_rows import JUMPS, code_of

MISSING = [missing_code(requirement.named) for rules in GROUP_RULES.values() for requirement in rules]


def test_every_code_that_can_be_given_is_in_the_catalogue_and_no_other():
    given = {*Problem, *Reason, *IntegrityProblem, *ContentProblem, *MISSING}
    given |= {*map(code_of, JUMPS), REQUEST_OVERDUE, WITHOUT_CLIENT, WRONG_KIND, SALE_GONE}

    assert given == set(CODES)


def test_every_finding_has_a_weight_an_owner_and_a_deadline():
    findings = [code for code in CODES.values() if code.severity]

    assert all(code.owner and code.deadline for code in findings)
    for subject in (Subject.SALE, Subject.FILE, Subject.SERVICE):
        weights = [list(Severity).index(code.severity) for code in findings if code.subject is subject]
        assert weights == sorted(weights)


def test_every_code_is_explained_by_the_command(run):
    for code in CODES:
        told = run("explain", code.lower(), "--json", within={}).told
        assert told["code"] == code
        assert told["meaning"]
        assert told["remedy"]
        assert told["section"]


def test_a_mistyped_code_gets_suggestions(run):
    assert "KYC_NOT_ALONE" in run("explain", "kyc_alone", ends=2, within={}).err

    assert "MISSING_POV" in run("explain", "POV", ends=2, within={}).err


def test_without_a_code_all_are_listed(run):
    told = run("explain", within={}).out
    assert all(code in told for code in CODES)
