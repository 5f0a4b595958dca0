from pathlib import Path

from tests.support.embedded_homes import processes_of
from tests.support.uploaded_sales import execute
from toolkit.database import schema

NOBODY_THERE = {
    "DATABASE_URL": "postgresql://analyst:hidden@127.0.0.1:1/sales",
    "EVIDENCE_BUCKET": "evidence",
    "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
    "AWS_ACCESS_KEY_ID": "key",
    "AWS_SECRET_ACCESS_KEY": "hidden",
}


def test_up_status_and_down(run, own_home):
    environ = {"TOOLKIT_HOME": str(own_home)}
    assert run("status", within=environ).out.count("does not run; it starts at its first use") == 2
    assert not own_home.exists()

    text = run("up", within=environ).out
    assert text.count("answers") == 2
    assert f"schema  {schema.newest_revision()} (the newest)" in text

    document = run("status", "--json", within=environ).told
    assert document["home"] == str(own_home)
    database, bucket = document["database"], document["bucket"]
    assert database["answers"]
    assert database["embedded"]
    assert database["schema"] == database["newestSchema"] == schema.newest_revision()
    assert (database["name"], database["version"].partition(".")[0]) == ("PostgreSQL", "18")
    assert Path(database["data"]).is_dir()
    assert bucket["answers"]
    assert bucket["address"].startswith("http://127.0.0.1:")
    assert {database["pid"], bucket["pid"]}.isdisjoint({None})

    assert run("down", within=environ).out == "stopped: PostgreSQL and S3 server\n"
    assert processes_of(own_home) == []
    assert run("down", within=environ).out == f"nothing runs in {own_home}\n"


def test_shared_services_are_shown_and_left_alone(run, own_home, embedded_environment):
    environ = {**embedded_environment, "TOOLKIT_HOME": str(own_home)}
    for command in ("up", "status"):
        text = run(command, within=environ).out
        assert "database  shared PostgreSQL 18." in text
        assert "bucket    shared S3 server, answers" in text
        assert embedded_environment["EVIDENCE_BUCKET"] in text
    run("down", within=environ)
    assert not own_home.exists()


def test_status_needs_attention_where_shared_services_do_not_answer(run, own_home, monkeypatch):
    for name, value in NOBODY_THERE.items():
        monkeypatch.setenv(name, value)
    text = run("status", ends=3, within={**NOBODY_THERE, "TOOLKIT_HOME": str(own_home)}).out
    assert text.count("does not answer\n") == 2
    assert "Check DATABASE_URL" in text
    assert "hidden" not in text


def test_status_tells_of_a_schema_that_does_not_fit(run, database):
    execute(database, "UPDATE audit.alembic_version SET version_num = '0035'")
    text = run("status", ends=3).out
    assert f"schema  0035 (needed: {schema.newest_revision()})" in text
    assert "Run: toolkit db upgrade" in text
