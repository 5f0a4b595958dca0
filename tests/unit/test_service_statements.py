"""``service.sql``: what is refused when the file is read, and what its statements say of themselves."""

import pytest

from toolkit.database.service import constants, is_null, load_service, tables_in
from toolkit.errors import SettingsError, WriteRefused

SALES = (
    "SELECT id, NULL AS client_id, grp AS utility_group, payer AS is_client_financial_responsible, "
    "NULL AS partner, created_at, NULL AS completed_at FROM x.sale"
)
RECORDS = (
    "SELECT id, sale_id, NULL AS file_name, NULL AS file_format, NULL AS type, kind AS evidence_type, "
    "key AS object_key, NULL AS requested_by, at AS requested_at, NULL AS expires_at FROM x.file"
)
CLIENTS = "SELECT * FROM x.client"


def written(tmp_path, sales=SALES, records=RECORDS, more=""):
    path = tmp_path / "service.sql"
    path.write_text(
        f"-- name: sales\n{sales};\n\n-- name: records\n{records}\n-- name: clients\n{CLIENTS};\n{more}"
    )
    return path


def test_comments_and_the_last_semicolon_belong_to_no_statement(tmp_path):
    service = load_service(written(tmp_path, sales=f"/* all */ {SALES} -- ; of them"))
    assert service.statements["sales"] == SALES


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"records": "TODO"}, "records: begins with TODO"),
        ({"sales": f"{SALES}; DELETE FROM x.sale"}, "sales: there is more than one statement"),
        ({"sales": "DELETE FROM x.sale RETURNING *"}, "begins with DELETE"),
        ({"sales": ""}, "sales: there is no statement"),
        ({"more": "-- name: sales\nSELECT 1"}, "the statement sales stands there twice"),
        ({"more": "-- name: add_client\nSELECT 1"}, "no statement is called 'add_client'"),
        ({"sales": SALES.replace("created_at", "NULL AS created_at")}, "sales: created_at is NULL"),
        ({"records": RECORDS.replace("kind AS", "NULL AS")}, "records: evidence_type is NULL"),
        (
            {"records": RECORDS.replace("kind AS", "CASE kind WHEN 'A' THEN 'AUT' ELSE 'POV' END AS")},
            "become 'POV'",
        ),
        ({"sales": f"{SALES} ORDER BY 1 LIMIT 12"}, "LIMIT would leave rows out that nobody judges"),
        ({"sales": SALES.replace("created_at", "at AT TIME ZONE '-03:00' AS created_at")}, "hours to the west"),
        ({"records": RECORDS.replace("kind AS", "'pov'::text AS")}, "evidence_type would become 'pov'"),
        ({"sales": SALES.replace("x.sale", "told")}, "told is a name that the toolkit uses beside the statement"),
        ({"records": f"WITH wanted AS MATERIALIZED ({RECORDS}) TABLE wanted"}, "records: wanted is a name that"),
        ({"sales": SALES.replace("grp AS", "CASE WHEN a THEN 'A' WHEN b THEN '1' END AS")}, "would become '1'"),
    ],
)
def test_what_is_wrong_is_refused_when_the_file_is_read(tmp_path, changed, said):
    with pytest.raises(SettingsError, match=said):
        load_service(written(tmp_path, **changed))


def test_a_missing_file_or_statement_is_named(tmp_path):
    with pytest.raises(SettingsError, match=r"TOOLKIT_SERVICE_SQL: .* cannot be read"):
        load_service(tmp_path / "none.sql")
    (tmp_path / "few.sql").write_text(f"-- name: sales\n{SALES}")
    with pytest.raises(SettingsError, match="the statement records is missing"):
        load_service(tmp_path / "few.sql")


def test_a_client_is_not_registered_where_something_that_is_required_has_no_place(tmp_path):
    more = "-- name: add_clients\nINSERT INTO x.client (id, cpf) SELECT id, cpf FROM new_clients"
    service = load_service(written(tmp_path, more=more))
    with pytest.raises(WriteRefused, match="does not store number_on_dealership, enrollment"):
        service.require("add_clients")


@pytest.mark.parametrize(
    ("statement", "tables"),
    [
        (
            'SELECT a FROM "Sale" s, crm.x AS y JOIN (SELECT b FROM c) z ON f(a, b) WHERE d',
            ['"Sale"', "crm.x", "c"],
        ),
        ("WITH one AS (SELECT 1 FROM x.t) SELECT EXTRACT(year FROM one.at) FROM one", ["x.t", "one.at", "one"]),
        ("SELECT 'FROM a.b' FROM ONLY e.f", ["e.f"]),
        ("INSERT INTO x.t SELECT * FROM new_records", ["x.t", "new_records"]),
    ],
)
def test_tables_are_found_in_a_statement(statement, tables):
    assert tables_in(statement) == tables


def test_constants_and_nulls_are_found():
    statement = "SELECT CASE a WHEN 'x' THEN CASE WHEN b THEN 'Q' END ELSE 'R''S' END AS kind, NULL::text AS other"
    assert sorted(constants(statement, "kind")) == ["Q", "R'S"]
    assert is_null(statement, "other")
    assert constants("SELECT facts ->> 'group' AS kind, CASE WHEN a THEN 'x' || b END AS other", "kind") == []
    assert constants("SELECT facts ->> 'group' AS kind, CASE WHEN a THEN 'x' || b END AS other", "other") == []
    assert not is_null(statement, "kind")
