"""Every code that anything can give is explained in one catalogue; findings have ids for ever."""

from uuid import uuid5

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
from toolkit.contract.findings import NAMESPACE, Problem, Reason, finding_id
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
        assert (told["code"], *map(bool, map(told.get, ("meaning", "remedy", "section")))) == (code, *[True] * 3)


def test_without_a_code_all_are_listed(run):
    told = run("explain", within={}).out
    assert all(code in told for code in CODES)


NAMES = st.text(st.characters(codec="utf-8"))


@settings(max_examples=20)
@given(NAMES, st.lists(NAMES, max_size=2))
def test_the_id_of_a_finding_is_a_uuid_of_version_5(code, subject):
    assert finding_id(code, *subject) == str(uuid5(NAMESPACE, "\x1f".join((code, *subject))))


def test_a_finding_has_its_remedy_where_texts_are_those_of_older_pandas():
    row = dict.fromkeys((*_LISTED, "reason")) | {"code": Problem.KYC_REPEATED}
    with pytest.warns(DeprecationWarning, match="infer_string"), pd.option_context("future.infer_string", False):
        listed = as_listed(pd.DataFrame([row]))
    assert listed["remedy"].tolist() == [CODES[Problem.KYC_REPEATED].remedy]
