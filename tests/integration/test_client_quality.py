"""Registered clients are looked through: what is doubtful is counted, and those that are alike are named."""

from dataclasses import asdict
from datetime import date

from tests.support.request_bodies import CLIENT, changed
from toolkit.intake.registration import Likeness, client_quality, register_client

TODAY = date(2026, 11, 20)
OTHER_CPF = "11144477735"


def test_no_client_is_no_doubt(database):
    found = client_quality(database, TODAY)
    assert (found.clients, found.counts, found.groups, found.alike) == (0, {}, {}, ())


def test_clients_that_are_alike_are_named_by_their_ids_and_masked_cpf(database, clock):
    def register(body):
        return str(register_client(database, body, clock).client_id)

    first, again = (
        register(CLIENT | {"email": "Ana@example.com"}),
        register(CLIENT | {"email": "other@example.com"}),
    )
    moved = changed(CLIENT, "address.installationNumber", "7654321")
    elsewhere = register(moved | {"email": "third@example.com"})
    somebody = register(CLIENT | {"cpf": OTHER_CPF, "email": "ana@example.com"})
    found = client_quality(database, TODAY)
    groups = {each.likeness: each for each in found.alike}
    assert found.clients == 4
    assert set(groups[Likeness.SAME_CONTRACT].client_ids) == {first, again}
    assert set(groups[Likeness.SAME_CPF].client_ids) == {first, again, elsewhere}
    assert groups[Likeness.SAME_CPF].cpf == "***.982.247-**"
    assert set(groups[Likeness.SAME_EMAIL].client_ids) == {first, somebody}
    assert groups[Likeness.SAME_EMAIL].cpf is None
    assert set(groups[Likeness.SAME_INSTALLATION].client_ids) == {first, again, somebody}
    assert found.counts["NO_SALE"] == 4
    assert "52998224725" not in str(asdict(found))
    assert len(client_quality(database, TODAY, most=1).alike) == len(found.groups)


def test_doubtful_values_are_counted(database, clock):
    old, young = (CLIENT | {"email": None, "birthdate": day} for day in ("1880-01-01", "2030-01-01"))
    register_client(database, old | {"phoneNumber": "20987654321"}, clock)
    register_client(database, changed(young, "address.zipCode", "78950-000"), clock)
    counts = client_quality(database, TODAY).counts
    of_values = ("AREA_CODE_UNKNOWN", "CEP_UNASSIGNED", "BIRTHDATE_IN_FUTURE", "BIRTHDATE_TOO_OLD")
    assert counts == dict.fromkeys(of_values, 1) | {"NO_EMAIL": 2, "NO_SALE": 2}
