"""A dump restored in place is noticed by a kept seal, and told until two people confirm it."""

import subprocess

import sqlalchemy as sa

from tests.support.evidence_files import pdf
from tests.support.uploaded_sales import add_record, add_sale
from toolkit.contract.evidence import EvidenceType
from toolkit.database.connection import raw
from toolkit.embedded import postgres


def test_a_dump_restored_in_place_is_told_until_two_people_confirm_it(run, database, bucket, s3, tmp_path):
    with database.transaction() as connection:
        address = raw(connection).info.dsn

    def program(name, *arguments):
        path = postgres._installed() / postgres._WHERE / "bin" / name
        subprocess.run([path, *arguments], check=True, capture_output=True)

    add_sale(database)
    record, key = add_record(database, evidence_type=EvidenceType.KYC)
    s3.put_object(Bucket=bucket.name, Key=key, Body=pdf())
    run("-q", "audit")
    program("pg_dump", "--format=custom", f"--file={tmp_path / 'dump'}", address)
    people = ["--reason", "of another sale", "--by", "ana", "--approved-by", "bruno"]
    run("evidence", "withdraw", str(record), *people)
    run("-q", "audit", ends=3)
    program("pg_restore", "--clean", "--if-exists", f"--dbname={address}", str(tmp_path / "dump"))

    # As after a failover, the same database has another address: the kept seal is filed by its identity.
    url = database.engine.url
    hosts = ["127.0.0.1:1", f"{url.query['host']}:{url.port or 5432}"]  # nobody answers at the first one
    moved = url.update_query_dict({"host": hosts}).render_as_string(hide_password=False)
    assert "restored from an older dump" in run("audit", ends=3, DATABASE_URL=moved).err
    assert "restored from an older dump" in run("audit", ends=3).err
    run("report", "--out", tmp_path / "report", "--format", "html,json")
    for written in ("html", "json"):
        assert "restored from an older dump" in (tmp_path / "report" / f"missing-evidence.{written}").read_text()
    confirm = ("db", "confirm-restore", "--reason", "disk failure", "--by", "Ana")
    assert "two people" in run(*confirm, "--approved-by", "ana", ends=1).err
    run(*confirm, "--approved-by", "Rui")
    assert "no restore to confirm" in run(*confirm, "--approved-by", "Rui", ends=1).err
    run("-q", "audit")
    with database.transaction() as connection:
        query = "SELECT detail FROM audit.custody_events WHERE kind = 'RESTORE_CONFIRMED'"
        told = connection.execute(sa.text(query)).scalar_one()
    assert "Ana" not in str(told)
    assert {"by", "approvedBy", "reason"} <= set(told)
