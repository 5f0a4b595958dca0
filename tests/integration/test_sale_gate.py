"""The gate: a sale is judged by what lies in the bucket now, and by what was found out about those versions."""

from datetime import timedelta
from importlib.resources import files

import pytest

from tests.support.evidence_files import pdf, tone
from tests.support.uploaded_sales import MONDAY, add_record, add_sale
from toolkit.contract.evidence import EvidenceType
from toolkit.contract.findings import Problem, Reason
from toolkit.database.connection import Database
from toolkit.database.service import load_service
from toolkit.evidence.completion import complete_sale
from toolkit.evidence.contents import verify_contents
from toolkit.evidence.gate import sale_gate
from toolkit.evidence.records import withdraw


@pytest.fixture
def ask(database, bucket, clock):
    add_sale(database, "S-1")
    return lambda: sale_gate(database, bucket, "S-1", None, clock)


@pytest.fixture
def upload(add_file):
    issued = {"file_name": "file", "requested_at": MONDAY - timedelta(hours=2)}
    return lambda kind, content: add_file("S-1", kind, content, **issued)


def reasons(gate):
    return {piece.evidence_type: piece.reason for piece in gate.verdict.missing}


def test_a_file_that_was_found_unusable_does_not_count_and_a_new_version_does(
    ask, upload, put, sync, database, bucket, delete, clock
):
    upload(EvidenceType.POV, tone())
    _, key = upload(EvidenceType.DOC_CONTRATANTE, pdf()[:200])
    assert reasons(ask()) == {}  # nobody has looked at them yet
    assert [each.not_examined for each in ask().types if each.files] == [1, 1]

    sync()
    verify_contents(database, bucket, clock=clock)
    found = ask()
    assert reasons(found) == {"DOC_CONTRATANTE": Reason.UNUSABLE}
    assert not found.may_be_completed
    assert [each.not_examined for each in found.types if each.files] == [0]

    put(key)
    assert ask().may_be_completed
    delete(key)
    assert reasons(ask()) == {"DOC_CONTRATANTE": Reason.VANISHED}


def test_the_gate_and_the_completion_agree(ask, upload, database, bucket, clock):
    pov, _ = upload(EvidenceType.POV, tone())
    upload(EvidenceType.DOC_CONTRATANTE, pdf())
    withdraw(database, pov, reason="Wrong sale", withdrawn_by="ana", approved_by="bruno", clock=clock)
    assert reasons(ask()) == {"POV": Reason.WITHDRAWN}
    assert complete_sale(database, bucket, "S-1", clock).verdict == ask().verdict

    upload(EvidenceType.POV, tone())
    assert ask().may_be_completed
    completed = complete_sale(database, bucket, "S-1", clock).completed_at
    after = ask()
    assert (after.completed_at, after.may_be_completed) == (completed, False)


def test_one_document_for_both_parties_stands_for_two(ask, upload):
    upload(EvidenceType.DOC_CONTRATANTE_E_RESPONSAVEL_FINANCEIRO, pdf())

    required = {each.evidence_type for each in ask().types if each.required}
    assert required == {EvidenceType.POV, EvidenceType.DOC_CONTRATANTE_E_RESPONSAVEL_FINANCEIRO}


def test_where_nobody_knows_what_a_sale_needs_that_is_said(database, bucket, clock):
    add_sale(database, "S-2", utility_group="X")
    found = sale_gate(database, bucket, "S-2", None, clock)
    assert {each.required for each in found.types} == {None}
    assert found.verdict.problems == (Problem.GROUP_UNKNOWN,)


def test_a_record_without_a_key_has_no_file(database, bucket, clock, tmp_path):
    add_sale(database, "S-1")
    add_record(database, "S-1", EvidenceType.POV, requested_at=MONDAY)
    place = tmp_path / "service.sql"
    packaged = (files("toolkit.database") / "service.sql").read_text("utf-8")
    place.write_text(
        packaged.replace("object_key, ", "CASE WHEN FALSE THEN object_key END AS object_key, ", 1), "utf-8"
    )
    service = load_service(place)
    other = Database(database.engine.url.render_as_string(hide_password=False), service=service)
    try:
        missing = {piece.evidence_type for piece in sale_gate(other, bucket, "S-1", None, clock).verdict.missing}
    finally:
        other.dispose()
    assert EvidenceType.POV in missing
