"""People may leave: two clients, one of them held; what is left of whom, and what still verifies."""

import io
import json
import shutil
import zipfile
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pyarrow.parquet as parquet
import pytest
import sqlalchemy as sa
import typst

from tests.support.evidence_files import pdf, silence, zipped
from tests.support.request_bodies import CLIENT
from tests.support.uploaded_sales import add_record, add_sale, execute, rows, unguarded
from tests.support.waiting import sessions_waiting, wait_until
from toolkit.bucket.client import Bucket
from toolkit.contract.events import HIDDEN
from toolkit.contract.privacy import PERSONAL, Right
from toolkit.database import tables
from toolkit.errors import BucketError, BucketUnavailable, DatabaseError, InvalidInput, PrivacyRefused
from toolkit.intake.registration import register_client
from toolkit.kit.connection import Kit
from toolkit.log.bundle import verify_bundle
from toolkit.log.notes import VerifierKey
from toolkit.privacy.persons import add_hold
from toolkit.privacy.searching import forms_of, search

MARIA = CLIENT | {"cpf": "52998224725", "firstName": "Maria", "lastName": "Quitéria"}
MARIA |= {"email": "maria@exemplo.com.br", "phoneNumber": "71987654321"}
JOAO = CLIENT | {"cpf": "11144477735", "firstName": "João", "lastName": "Cândido"}
JOAO |= {"email": "joao@exemplo.com.br", "phoneNumber": "21912345678"}
PEOPLE = ("--basis", "consent revoked", "--by", "Ana Souza", "--approved-by", "Rui Lima")


@pytest.fixture
def office(run, embedded_environment, database, postgres_tool, bucket, s3, clock, tmp_path, monkeypatch):
    """Two clients with a sale each, files in two versions, a report, rejected rows, a notebook; João is held."""
    Path(embedded_environment["TOOLKIT_HOME"], "custody-log.key").write_text("k" * 64)
    s3.put_bucket_versioning(Bucket=bucket.name, VersioningConfiguration={"Status": "Enabled"})
    clients, records, keys = {}, {}, {}
    for sale, body, file_name in (("V-1", MARIA, "rg-quiteria.pdf"), ("V-2", JOAO, "rg-candido.pdf")):
        clients[sale] = register_client(database, body).client_id
        add_sale(database, sale, client_id=clients[sale], partner="Norte")
        records[sale], keys[sale] = add_record(database, sale, "KYC", file_name=file_name)
        for _ in range(2):
            s3.put_object(Bucket=bucket.name, Key=keys[sale], Body=pdf())
        s3.create_multipart_upload(Bucket=bucket.name, Key=keys[sale])
    work = tmp_path / "work"
    work.mkdir()
    (work / "rejected.csv").write_text("cpf;errors\n529.982.247-25;Required\n")
    (work / "executed.ipynb").write_text(json.dumps({"cells": [{"outputs": ["rg-quiteria.pdf"]}]}))
    (work / "rows.xlsx").write_bytes(zipped("xl/sheet1.xml", "<t>Maria Quitéria</t>"))
    (work / "others.csv").write_text("cpf\n11144477735\n")
    (work / "called.txt").write_text("+55 (71) 98765-4321\n")

    def asked(*words, cpf, ends=0, **environ):
        monkeypatch.setattr("sys.stdin", io.StringIO(f"{cpf}\n"))
        return run("privacy", *words, ends=ends, **environ)

    run("-q", "report", "--out", tmp_path / "before", "--format", "csv,json")
    run("privacy", "hold", "add", "V-2", "--basis", "lawsuit 0001", "--by", "Ana Souza")
    home, before = Path(run("status", "--json").told["home"]), tmp_path / "before"
    left = partial(left_of, postgres_tool, bucket.name, s3, (work, before, home))
    known = {"clients": clients, "records": records, "keys": keys}
    return SimpleNamespace(asked=asked, work=work, before=before, home=home, left=left, **known)


def left_of(tool, bucket, s3, places, needles):
    """Return where something of a person is found: a dump, the bucket in every version, and the files."""
    listed = s3.list_object_versions(Bucket=bucket)
    listed |= {"Uploads": s3.list_multipart_uploads(Bucket=bucket).get("Uploads", ())}
    keys = [each["Key"] for kind in ("Versions", "DeleteMarkers", "Uploads") for each in listed.get(kind, ())]
    held = {"dump": tool("pg_dump"), "bucket": str(keys).encode()}
    for path in (each for place in places for each in place.rglob("*") if each.is_file()):
        held[path] = path.read_bytes()
        if path.suffix == ".parquet":
            held[path] = str(parquet.read_table(path).to_pydict()).encode()
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                held[path] = b"".join(archive.read(each) for each in archive.namelist())
    return [f"{where}: {each}" for where, content in held.items() for each in needles if each.encode() in content]


OF_MARIA = ("52998224725", "529.982.247-25", "Quitéria", "71987654321", "maria@exemplo", "quiteria")
OF_HER = {"rejected.csv", "executed.ipynb", "rows.xlsx", "called.txt"}
OF_FILES = ("CONTENT_REUSED", "WRITTEN_LATE")
OF_JOAO = ("11144477735", "Cândido", "21912345678", "joao@exemplo", "candido")


def test_one_leaves_the_held_one_stays_and_every_proof_still_holds(office, run, database, postgres_tool, tmp_path):
    backup, before = str(tmp_path / "backup"), datetime.now(UTC).isoformat()
    postgres_tool("pg_dump", "--format=custom", f"--file={backup}")

    # What would go is told first; nothing changes.
    (calls := tmp_path / "calls").mkdir()
    (calls / "call.wav").write_bytes(silence(1.0))
    folders = ("--look-in", office.work, "--look-in", calls)
    plan = office.asked("erase", "--dry-run", *folders, "--json", cpf="529.982.247-25").told
    assert (len(plan["clients"]), plan["sales"], plan["objects"], plan["kept"]) == (1, ["V-1"], 1, [])
    assert {Path(each).name for each in plan["files"]} == OF_HER
    assert plan["notSearched"] == [str(calls / "call.wav")]
    assert len(office.left(OF_MARIA)) > 5

    left = office.home / ".toolkit-draft-of-an-export-that-was-killed"
    left.mkdir()
    (left / "scan.pdf").write_text("rg-quiteria.pdf")
    alone = (*PEOPLE[:4], "--approved-by", "ana souza")
    assert "two people" in office.asked("erase", *alone, cpf="52998224725", ends=1).err
    asked = ("-q", "findings", "--as-of", before, "--json")
    known = run(*asked, ends=3).told["findings"]
    assert "Erased" in office.asked("erase", *PEOPLE, "--look-in", office.work, cpf="52998224725").out
    assert office.left(OF_MARIA) == []
    assert len(office.left(OF_JOAO)) > 4
    assert "0 clients, 0 sales" in office.asked("show", cpf="52998224725").out

    # Neither the hashes nor the keys and salts by which they could be tried out are left.
    keys = "SELECT sale_id, wrapped IS NOT NULL FROM audit.sale_keys ORDER BY 1"
    assert rows(database, keys) == [("V-1", False), ("V-2", True)]
    record = office.records["V-1"]
    hidden = sorted({name for names in HIDDEN.values() for name in names})
    of_her = f"""
        FROM audit.custody_events LEFT JOIN audit.object_observations AS seen ON seen.key = 'erased/{record}'
        WHERE detail ->> 'evidence' = '{record}'
           OR kind IN ('UPLOADED', 'VERIFIED') AND detail ->> 'observation' = seen.id::text
    """
    left = rows(database, f"SELECT DISTINCT kind, salt, detail ?| ARRAY{hidden} {of_her}")
    assert sorted(left) == [(kind, None, False) for kind in ("RECORDED", "UPLOADED", "VERIFIED")]

    # The next audit judges who stayed, nothing is odd, and what was issued before still verifies.
    document = run("-q", "audit", "--json").told
    assert (document["sales"], document["compliant"]) == (1, 1)
    document = run("-q", "audit", "--as-of", before, "--json").told
    assert (document["sales"], document["compliant"]) == (2, 2)
    again = [each | {"id": ""} for each in run(*asked, ends=3).told["findings"]]
    assert sorted(again, key=str) == sorted((each | {"id": ""} for each in known), key=str)
    run("-q", "report", "--out", tmp_path / "after", "--format", "csv,json")
    known = VerifierKey.parse((tmp_path / "after" / "log.vkey").read_text())
    for folder in (office.before, tmp_path / "after"):
        assert [each.holds for each in verify_bundle(folder, known).values()][:2] == [True, True]
    exported = run("log", "export", tmp_path / "log")
    assert "another one" not in exported.out + exported.err
    entries = b"".join(
        path.read_bytes() for path in (tmp_path / "log" / "tile" / "entries").rglob("*") if path.is_file()
    )
    assert b'"kind":"ERASED"' in entries
    assert not [each for each in ("Ana Souza", *OF_MARIA) if each.encode() in entries]
    checkpoints = [folder / "checkpoint" for folder in (office.before, tmp_path / "after")]
    run("log", "consistency", *checkpoints, "--log", tmp_path / "log", within={})

    # A backup that is older brings her back until the ledger is replayed.
    postgres_tool("pg_restore", "--clean", "--if-exists", backup)
    assert len(office.left(OF_MARIA)) > 3
    assert "1 erasure" in run("privacy", "replay", "--dry-run", ends=3).out
    run("privacy", "replay")
    assert office.left(OF_MARIA) == []
    run("privacy", "replay", "--dry-run")
    other = {"TOOLKIT_ERASURE_LEDGER": str(tmp_path / "other.jsonl")}
    told = run("privacy", "replay", ends=3, **other).out
    assert "There is no ledger at" in told
    assert "does not list 1 erasure that" in told

    # The hold ends, and with it what stood in the way.
    [hold] = run("privacy", "hold", "list", "--json").told["holds"]
    run("privacy", "hold", "release", hold["id"], "--reason", "settled", "--by", "Ana Souza")
    office.asked("erase", *PEOPLE, "--look-in", office.work, cpf="11144477735")
    assert office.left(OF_JOAO) == []
    for folder in (office.before, tmp_path / "after"):
        assert [each.holds for each in verify_bundle(folder, known).values()][:2] == [True, True]


def test_an_erasure_that_stopped_is_taken_up(office, run, database, monkeypatch):
    execute(database, "CREATE TABLE bill (sale text REFERENCES sales DEFERRABLE INITIALLY DEFERRED)")
    execute(database, "INSERT INTO bill VALUES ('V-1')")
    assert "bill_sale_fkey" in office.asked("erase", *PEOPLE, cpf=MARIA["cpf"], ends=1).err
    assert not (office.home / "erasures.jsonl").exists(), "nothing was removed"
    execute(database, "DROP TABLE bill")
    with monkeypatch.context() as changed:
        changed.setattr(Bucket, "erase", Mock(side_effect=BucketError("The version is locked.")))
        assert "locked. The erasure " in office.asked("erase", *PEOPLE, cpf=MARIA["cpf"], ends=1).err
    assert rows(database, "SELECT count(*) FROM audit.erasures") == [(0,)]
    assert "1 erasure would" in run("privacy", "replay", "--dry-run", ends=3).out
    run("privacy", "replay")
    shutil.rmtree(office.work)
    assert office.left(OF_MARIA) == []
    # Of a line that was cut nothing was erased; the next one takes its place, and not that of a whole one.
    ledger = office.home / "erasures.jsonl"
    [whole] = ledger.read_bytes().splitlines()
    for kept in (whole + b"\n" + whole[:50], whole):
        ledger.write_bytes(kept)
        add_sale(database, "V-9")
        assert "0 erasures" in run("privacy", "replay", "--dry-run", ends=None).out
        run("privacy", "erase", "--sale", "V-9", *PEOPLE)
        assert [json.loads(line)["sales"] for line in ledger.read_text().splitlines()] == [["V-1"], ["V-9"]]
    kept = ledger.read_bytes()
    ledger.write_bytes(b"{}\n" + kept)
    assert "line 1: is no erasure" in run("privacy", "replay", ends=1).err
    ledger.write_bytes(kept)
    for sale in ("V-1", "V-9"):  # as when the tables of the service alone are restored
        add_sale(database, sale)
    add_record(database, "V-1", "POV")
    with monkeypatch.context() as changed:
        changed.setattr(Bucket, "erase", Mock(side_effect=BucketUnavailable("It is away.")))
        run("privacy", "replay", ends=1)
        assert "2 erasures would" in run("privacy", "replay", "--dry-run", ends=3).out
        changed.setattr(Bucket, "erase", Mock(side_effect=BucketError("The version is locked.")))
        assert json.loads(kept.splitlines()[0])["id"] in run("privacy", "replay", ends=1).err
    assert "1 erasure would" in run("privacy", "replay", "--dry-run", ends=3).out
    run("privacy", "replay")
    run("privacy", "replay", "--dry-run")


def test_a_locked_version_is_told(bucket, s3, monkeypatch):
    monkeypatch.setattr(bucket, "name", f"{bucket.name}-locked")
    s3.create_bucket(Bucket=bucket.name, ObjectLockEnabledForBucket=True)
    version = s3.put_object(Bucket=bucket.name, Key="key", Body=b"x")["VersionId"]
    s3.put_object_legal_hold(Bucket=bucket.name, Key="key", VersionId=version, LegalHold={"Status": "ON"})
    with pytest.raises(BucketError, match="A version is locked, or"):
        bucket.erase("key")


def test_a_file_that_may_still_come_is_waited_for(office, run, database, bucket, s3, monkeypatch):
    execute(database, "UPDATE evidences SET expires_at = '2099-01-01' WHERE sale_id = 'V-1'")
    assert office.asked("erase", "--dry-run", "--json", cpf=MARIA["cpf"]).told["kept"] == []
    add_record(database, "V-1", "DOC_CONTRATANTE")
    execute(database, "UPDATE evidences SET expires_at = '2099-01-01' WHERE sale_id = 'V-1'")
    told = office.asked("erase", "--dry-run", "--json", cpf=MARIA["cpf"], ends=3).told
    assert "credentials are valid until 2098-12-31T" in told["kept"][0]["kept"]
    execute(database, "UPDATE evidences SET expires_at = '2026-03-03' WHERE sale_id = 'V-1'")
    erase = Bucket.erase

    def slowly(place, key):
        erase(place, key)
        if not rows(database, "SELECT FROM evidences WHERE file_name = 'quiteria.pdf'"):
            _, late = add_record(database, "V-1", "DOC_CONTRATANTE", file_name="quiteria.pdf")
            s3.put_object(Bucket=bucket.name, Key=late, Body=pdf())
            run("bucket", "sync", "--confirm-disappearance")

    monkeypatch.setattr(Bucket, "erase", slowly)
    office.asked("erase", *PEOPLE, "--look-in", office.work, cpf=MARIA["cpf"])
    assert office.left(OF_MARIA) == []


def test_a_record_leaves_the_sale_that_it_was_of_before_too(office, run, database):
    before = datetime.now(UTC).isoformat()
    run("evidence", "withdraw", office.records["V-1"], "--reason", "quiteria asked", *PEOPLE[2:])
    add_sale(database, "V-3")
    execute(database, "UPDATE evidences SET sale_id = 'V-3' WHERE sale_id = 'V-1'")
    run("bucket", "sync")
    shutil.rmtree(office.work)
    run("privacy", "erase", "--sale", "V-3", *PEOPLE)
    assert office.left(("quiteria",)) == []
    past = run("-q", "findings", "--as-of", before, "--json", ends=3).told
    assert {each["code"]: each["status"] for each in past["findings"]} == dict.fromkeys(OF_FILES, "open")


def test_a_sale_that_the_service_deleted_is_found_by_its_client_and_erased(office, run, database, tmp_path):
    execute(database, f"UPDATE sales SET client_id = '{office.clients['V-2']}' WHERE id = 'V-1'")
    assert office.asked("show", "--json", cpf=MARIA["cpf"]).told["sales"] == []  # the history has not seen it yet
    execute(database, "DELETE FROM evidences WHERE sale_id = 'V-1'", "DELETE FROM sales WHERE id = 'V-1'")
    run("bucket", "sync", "--confirm-disappearance")
    assert [each["saleId"] for each in office.asked("show", "--json", cpf=MARIA["cpf"]).told["sales"]] == ["V-1"]
    office.asked("export", "--out", tmp_path / "copy", "--reason", "request 7", "--with-files", cpf=MARIA["cpf"])
    with zipfile.ZipFile(next((tmp_path / "copy").iterdir())) as archive:
        [record] = json.loads(archive.read("person.json"))["records"]
        assert archive.read(f"files/{record['id']}.pdf").startswith(b"%PDF")
    office.asked("erase", *PEOPLE, "--look-in", office.work, cpf=MARIA["cpf"])
    assert office.left(OF_MARIA) == []
    assert office.asked("show", "--json", cpf=MARIA["cpf"]).told["sales"] == []


def test_what_people_wrote_about_a_sale_goes_with_it(office, run, database, postgres_tool):
    for sale, name in (("V-1", "Quitéria"), ("V-2", "Cândido")):
        of_waiver = (*PEOPLE[4:], "--owner", "Ana Souza", "--end", f"{datetime.now(UTC).year + 1}-01-01")
        waiver = run("waiver", "add", "--sale", sale, "--reason", f"{name} died", *of_waiver, "--json").told
        run("waiver", "revoke", waiver["waivers"][0]["id"], "--reason", f"{name} lives", "--by", "Ana Souza")
        run("privacy", "hold", "add", sale, "--basis", f"suit of {name}", "--by", "Ana Souza")
        held = run("privacy", "hold", "list", "--json").told["holds"][0]["id"]
        run("privacy", "hold", "release", held, "--reason", f"{name} agreed", "--by", "Ana Souza")
        run("evidence", "withdraw", office.records[sale], "--reason", f"{name} asked for it", *PEOPLE[2:])
    office.asked("erase", *PEOPLE, cpf=MARIA["cpf"])
    dump = postgres_tool("pg_dump").decode()
    assert "Quitéria" not in dump
    for text in ("died", "lives", "agreed", "asked for it"):
        assert f"Cândido {text}" in dump
    assert "suit of Cândido" in dump


def test_her_files_are_found_those_of_others_are_not_and_what_nobody_can_search_is_named(tmp_path):
    texts = ("ana@x.com", "sant'ana & li.pdf", "1234567890", "52998224725", "20251130")
    letter = typst.compile("#set page(width: 3cm)\nPrezada Maria Quitéria".encode())
    locked = bytearray(zipped("others.csv", "cpf"))
    locked[6] |= 1  # in the head of the file, and in the directory at the end: it has a password
    locked[locked.index(b"PK\x01\x02") + 8] |= 1
    hers = {
        "letter.pdf": letter,
        "many.zip": zipped("letter.pdf", letter),
        "old.csv": "nome;QUITÉRIA MARIA;MARIA  QUITÉRIA\n".encode("cp1252"),
        "plain.txt": "MARIA QUITERIA",
        "unicode.txt": "Maria Quitéria".encode("utf-16"),
        "decomposed.txt": "Maria Quite\u0301ria",
        "name.csv": "2026;ANA  LÍ;",
        "note.ipynb": json.dumps({"text": "\nAna Li\nana"}),
        "page.html": "<td>Sant&#x27;Ana &amp; L&iacute;.pdf</td>",
        "cell.txt": "v=01234567890",
        "mask.txt": "cpf 529982247-25",
        "mail.txt": "<ana@x.com>",
        "call of Ana Li.mp3": "\0",
        "sant'ana & li.pdf": "",
    }
    others = {"analysis.txt": "2025-11-30 Análise", "juliana.csv": "juliana@x.com", "company.csv": "ana@x.company"}
    unknown = {"scan.pdf": typst.compile(b"#rect(fill: black)"), "call.wav": silence(1.0), "locked.zip": locked}
    for name, content in (hers | others | unknown).items():
        (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    searched = search((tmp_path, tmp_path), forms_of(("Ana Li", "Maria Quitéria", *texts)))
    assert [[path.name for path in each] for each in searched] == [sorted(hers), sorted(unknown)]


def test_a_hold_that_comes_while_files_are_searched_is_kept(office, run, database, monkeypatch):
    def slowly(folders, needles):
        run("privacy", "hold", "add", "V-1", "--basis", "lawsuit 0002", "--by", "Ana Souza")
        return search(folders, needles)

    monkeypatch.setattr("toolkit.kit.privacy.search", slowly)
    told = office.asked("erase", *PEOPLE, "--look-in", office.work, cpf=MARIA["cpf"], ends=1)
    assert "Nothing was removed" in told.err
    assert rows(database, "SELECT id FROM sales ORDER BY 1") == [("V-1",), ("V-2",)]
    assert (office.work / "rejected.csv").exists()


def test_a_hold_waits_for_an_erasure_and_a_client_stays_with_a_sale_that_came_meanwhile(
    office, run, database, monkeypatch
):
    erase, held = Bucket.erase, []

    def hold():
        with pytest.raises(PrivacyRefused, match="no sale with the id 'V-1'"):
            add_hold(database, "V-1", basis="suit", by="Ana", until=None, today=date.max)

    def slowly(place, key):
        if not held:
            held.append(people.submit(hold))
            add_sale(database, "V-9", client_id=office.clients["V-1"])
            wait_until(lambda: sessions_waiting(database) == 1)
        erase(place, key)

    with ThreadPoolExecutor() as people, monkeypatch.context() as changed:
        changed.setattr(Bucket, "erase", slowly)
        office.asked("erase", *PEOPLE, "--look-in", office.work, cpf=MARIA["cpf"])
        held[0].result()
    assert rows(database, "SELECT id FROM sales ORDER BY 1") == [("V-2",), ("V-9",)]
    assert rows(database, "SELECT count(*) FROM clients") == [(2,)]
    run("privacy", "replay", "--dry-run")
    run("privacy", "erase", "--sale", "V-9", *PEOPLE)
    assert office.left(OF_MARIA) == []


def test_a_listing_of_before_an_erasure_brings_no_name_back(
    office, run, database, bucket, s3, embedded_environment, monkeypatch
):
    s3.put_object(Bucket=bucket.name, Key=office.keys["V-1"], Body=pdf() + b"%")
    erased, keeps_versions = [], Bucket.keeps_versions

    def erase():
        with Kit(embedded_environment) as kit:
            people = {"basis": "consent revoked", "by": "Ana Souza", "approved_by": "Rui Lima"}
            with pytest.raises(InvalidInput, match="no folder"):
                kit.privacy.erase(MARIA["cpf"], look_in=[office.work / "mistyped"], **people)
            kit.privacy.erase(MARIA["cpf"], look_in=[office.work], **people)

    def slowly(place):
        if not erased:
            erased.append(others.submit(erase))
            wait_until(lambda: erased[0].done() or sessions_waiting(database))
        return keeps_versions(place)

    with ThreadPoolExecutor() as others, monkeypatch.context() as changed:
        changed.setattr(Bucket, "keeps_versions", slowly)
        run("bucket", "sync", ends=None)
        erased[0].result()
    assert office.left(OF_MARIA) == []


def test_a_history_is_still_refused_to_whoever_erases_nothing_and_to_erasures_of_another_cluster(office, database):
    office.asked("erase", *PEOPLE, cpf="52998224725")
    for statement in (
        "UPDATE audit.object_observations SET key = 'other'",
        "UPDATE audit.custody_events SET detail = '{}'",
        "UPDATE audit.erasures SET basis = ''",
        "DELETE FROM audit.erasures",
        "UPDATE audit.observation_clock SET stands_at = stands_at - interval '1 second'",
        "DELETE FROM audit.observation_clock",
    ):
        with pytest.raises(DatabaseError, match=r"never changed|change only once|never goes back"):
            execute(database, statement)
    row = """
        INSERT INTO audit.erasures SELECT gen_random_uuid(), pg_current_xact_id()::text::bigint + number, '[]',
        0, 0, 0, 'b', 'a', 'c', now() FROM generate_series(1, 500) AS number
    """
    execute(database, row)  # the numbers of transactions to come, as a dump of another cluster may have
    with pytest.raises(DatabaseError, match="change only once"):
        execute(database, "UPDATE audit.object_observations SET key = 'other'")


def test_hashes_or_a_key_of_a_sale_that_went_without_an_erasure_are_told(office, run, database, tmp_path):
    run("log", "seal")
    blank = """UPDATE audit.custody_events SET detail = detail - 'record' || '{"erased": true}'"""
    unguarded(database, "custody_events", f"{blank} WHERE kind = 'RECORDED'")
    told = run("log", "export", tmp_path / "hashes", ends=None)
    assert "no erasure says so" in told.out + told.err
    hidden = "SELECT sale_key IS NOT NULL FROM audit.log_entries WHERE convert_from(entry, 'UTF8') LIKE '%\"{}\"%'"
    assert {row for kind in ("RECORDED", "UPLOADED") for row in rows(database, hidden.format(kind))} == {(True,)}
    assert rows(database, "SELECT count(DISTINCT wrapped) FROM audit.sale_keys") == [(2,)]
    lost = run(
        "log", "export", tmp_path / "lost", ends=3, TOOLKIT_LOG_KEY="another-key-as-the-first-one-was-lost"
    ).out
    assert "Or its key is missing" in lost
    unguarded(database, "sale_keys", "UPDATE audit.sale_keys SET wrapped = NULL")
    told = run("log", "export", tmp_path / "log", ends=None)
    assert "the key of its sale is gone, and no erasure says so" in told.out + told.err


def test_a_cpf_in_another_encoding_than_utf_8_is_refused(run, monkeypatch):
    with io.TextIOWrapper(io.BytesIO("39053344705".encode("utf-16")), "utf-8") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        assert "A CPF has 11 digits" in run("privacy", "show", ends=1).err


def test_a_person_gets_a_full_copy_that_only_its_owner_reads(office, run, database, tmp_path):
    shown = office.asked("show", cpf="529.982.247-25")
    assert "***.982.247-**" in shown.out
    assert not [each for each in OF_MARIA if each in shown.out + shown.err]
    told = office.asked(
        "export", "--out", tmp_path / "copy", "--reason", "request 7", "--with-files", cpf="52998224725"
    )
    office.asked("export", "--out", tmp_path / "copy", "--reason", "request 8", cpf="11144477735")
    path, _ = sorted((tmp_path / "copy").iterdir())
    assert str(path) in told.out
    assert path.stat().st_mode & 0o777 == 0o600
    with zipfile.ZipFile(path) as archive:
        copy = json.loads(archive.read("person.json"))
    assert copy["clients"][0]["email"] == MARIA["email"]
    assert copy["records"][0]["file_name"] == "rg-quiteria.pdf"
    kinds = "SELECT kind, count(*) FROM audit.custody_events WHERE kind IN ('OPENED', 'UNMASKED') GROUP BY 1"
    assert sorted(rows(database, kinds)) == [("OPENED", 1), ("UNMASKED", 2)]
    office.asked("erase", *PEOPLE, cpf=MARIA["cpf"])
    assert rows(database, "SELECT reason FROM audit.evidence_openings") == [("",)]
    # The log holds neither the reasons nor who gave them, and agrees with the tables.
    assert "another one" not in run("log", "export", tmp_path / "log").out
    entries = str(rows(database, "SELECT convert_from(entry, 'UTF8') FROM audit.log_entries"))
    assert "request 7" not in entries
    hashes = "SELECT sha256 FROM audit.content_checks UNION SELECT etag FROM audit.object_observations"
    found = [each.strip('"') for (each,) in rows(database, hashes) if each]
    assert found
    assert not [each for each in found if each in entries]


def test_every_column_with_a_text_is_in_the_registry_or_known_to_be_nobodys():
    columns = {
        f"{table.name}.{column.name}"
        for metadata in (tables.service, tables.toolkit)
        for table in metadata.tables.values()
        for column in table.columns
        if isinstance(column.type, sa.Text | tables.SignedText) or column.name == "birthdate"
    }
    personal = {f"{table}.{column}" for table, names in PERSONAL.items() for column in names}
    assert personal <= columns
    assert {each.partition(".")[2] for each in columns - personal} == NOBODYS


NOBODYS = set(
    """
    answer bucket channel code depth etag evidence_type failure file_format fingerprint folder gone_how host id job
    kind line lost_seal media_type name normal_form note outcome partner problem reason right sale_id schedule seal
    sha256 source stage status stored_type token_id type utility_group version_id vkey witness
    """.split()  # noqa: SIM905
)
"""The columns of texts that tell of no person."""


def test_holds_end_and_requests_come_by_the_day_of_the_time_zone(embedded_environment, database):
    add_sale(database, "V-1")
    environ = embedded_environment | {"TOOLKIT_LOG_KEY": "k" * 40}
    late = datetime(2026, 11, 29, 1, 30, tzinfo=UTC)  # still the 28th in São Paulo
    with Kit(environ=environ, clock=lambda: late) as kit:
        with pytest.raises(PrivacyRefused, match="still to come"):
            kit.privacy.hold("V-1", basis="lawsuit", by="Ana Souza", until=date(2026, 11, 28))
        kit.privacy.hold("V-1", basis="lawsuit", by="Ana Souza", until=date(2026, 11, 29))
        [held] = json.loads(json.dumps(kit.privacy.holds().document))["holds"]  # as a notebook keeps it
        assert [held[name] for name in ("saleId", "until", "state")] == ["V-1", "2026-11-29", "holds"]
        with pytest.raises(PrivacyRefused, match="has been"):
            kit.privacy.request("52998224725", Right.ACCESS, date(2026, 11, 29))
        assert kit.privacy.request("52998224725", Right.ACCESS).received_on == date(2026, 11, 28)
