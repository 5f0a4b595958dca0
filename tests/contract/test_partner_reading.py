"""What a partner's software reads and answers, by the client that comes with the toolkit."""

from datetime import date, timedelta
from uuid import uuid4

import pytest

from tests.contract.conftest import issue, partner_of
from tests.support.request_bodies import UPLOAD
from tests.support.uploaded_sales import MP3, PDF
from tests.support.waiting import wait_until
from toolkit.database.connection import Lock, take
from toolkit.errors import FindingNotFound, InvalidFields, SaleNotFound
from toolkit.kit.connection import Kit
from toolkit.partner import PartnerClient


def test_the_client_of_the_toolkit_uploads_reads_and_answers(environ, audited, tmp_path):
    sale, theirs = (audited.sale(f"V-{uuid4()}", partner=name) for name in ("Luz", "Sol"))
    with Kit(environ) as kit:
        of_sol = kit.audit().sql(f"SELECT id FROM findings WHERE sale_id = '{theirs}'")["id"][0]
    luz = PartnerClient(audited.server.url, issue(environ, "crm", partner="Luz"))
    # The service looks for a newer audit some seconds after the last time: somebody may have asked just before.
    wait_until(lambda: [*luz.findings()], step=0.2)
    for kind, media_type, content in (("POV", "audio/mpeg", MP3), ("DOC_CONTRATANTE", "application/pdf", PDF)):
        assert luz.completion(sale)["mayBeCompleted"] is False
        (tmp_path / kind).write_bytes(content)
        luz.upload(sale, tmp_path / kind, evidence_type=kind, media_type=media_type)
    assert luz.completion(sale)["mayBeCompleted"] is True
    assert [each["state"] for each in luz.evidences(sale)["evidences"]].count("present") == 2

    found = [*luz.findings()]
    assert {each["saleId"] for each in found} == {sale}
    due, month = max(date.fromisoformat(each["dueAt"][:10]) for each in found), timedelta(days=30)
    assert [len([*luz.findings(due_before=day)]) for day in (due - month, due + month)] == [0, len(found)]
    assert luz.answer(found[0]["id"], "willCome", until=date(2099, 1, 1), text="on Monday")
    for error, refused in (
        (InvalidFields, lambda: [*luz.findings(status="solved")]),
        (FindingNotFound, lambda: luz.answer(of_sol, "sentAgain")),
        (SaleNotFound, lambda: luz.completion(theirs)),
        (SaleNotFound, lambda: luz.evidences(theirs)),
    ):
        with pytest.raises(error):
            refused()
    luz.close()


def test_who_asks_for_the_sale_of_another_does_not_wait_for_it(environ, service):
    """How long the answer takes would tell that the sale is there, and that its partner is asking."""
    sale = service.sale(f"V-{uuid4()}", partner="Vale")
    sol = partner_of(service.server.url, issue(environ, partner="Sol"))
    with sol, service.database.transaction() as connection:
        take(connection, Lock.OPEN_FORMS, sale)
        theirs = sol.put(f"/sales/{sale}/evidences", json=UPLOAD)
    assert theirs.status_code == 404
