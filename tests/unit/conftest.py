"""The audit result that the tests of reports begin with."""

from uuid import UUID

import pytest

from tests.support.audit_results import SALES, result_of, source
from toolkit.contract.contents import IntegrityFinding, IntegrityProblem

FILE_FINDINGS = (
    IntegrityFinding(
        IntegrityProblem.CONTENT_REUSED,
        ("evidences/2026/11/02/0199c2d4-0000-7000-8000-00000000000a/Ana Lima.mp3", "evidences/2026/11/03/b/c.mp3"),
        (UUID(int=10), UUID(int=11)),
        ("VND-1", "VND-7"),
        "SHA-256 0123abcd",
    ),
    IntegrityFinding(IntegrityProblem.KEY_OUTSIDE_LAYOUT, ("Ana Lima.pdf",)),
)


@pytest.fixture
def result():
    return result_of(SALES, given_source=source(embedded=["database", "bucket"]), file_findings=FILE_FINDINGS)
