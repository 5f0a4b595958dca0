"""``toolkit audit``, ``report`` and ``verify``, from the command line to the files."""

import csv
import os
import stat

import pytest

from tests.support.observations import Story, day
from tests.support.uploaded_sales import MP3, PDF
from toolkit.contract.evidence import EvidenceType


@pytest.fixture
def story(database):
    """Two sales of March, one of them with a file that was there until the 20th."""
    told = Story(database)
    told.sale("good", partner="Norte")
    told.file("good", EvidenceType.KYC)
    told.sale("bad", utility_group="B", client_id=told.client(cpf="52998224725"))
    _, key = told.record("bad", "POV")
    told.upload(key, gone_at=day(20))
    return told


def test_an_audit_of_a_past_day_shows_the_totals(run, story, tmp_path):
    shown = run("--quiet", "audit", "--as-of", "2026-03-10", "--out", tmp_path, ends=3)
    lines = [line.split() for line in shown.out.splitlines()]
    assert shown.out.startswith("As of 10 Mar 2026, 23:59 (UTC-03:00)\n1 of 2 sales lacks evidence.\n")
    assert lines[5:9] == [["A", "1", "0", "0"], ["B", "0", "1", "0"], ["C", "0", "0", "0"], ["D", "0", "0", "0"]]
    assert ["DOC_CONTRATANTE", *"00000001"] in lines
    assert ["8-30", "1", "0"] in lines
    assert shown.out.endswith(f"Folder of the audit {tmp_path / '2026-03-10T23-59-59Z'}\n")
    assert "note: 1 file counts although nobody has examined it." in shown.err


def audited(run, *words, **environ):
    ran = run("--quiet", "audit", "--json", *words, ends=None, **environ)
    return ran.status, ran.told


def test_an_audit_of_now_looks_at_sales_and_bucket_first(run, embedded_environment, story, s3):
    bucket = embedded_environment["EVIDENCE_BUCKET"]
    story.file("bad", EvidenceType.DOC_CONTRATANTE)
    _, pov = story.record("bad", "POV")
    s3.put_object(Bucket=bucket, Key=pov, Body=MP3)

    status, unseen = audited(run, "--no-sync")
    assert (status, unseen["sales"], unseen["compliant"], unseen["incomplete"]) == (3, 2, 1, 1)
    assert unseen["source"]["lastSync"] is None

    # What the observations of the story tell is not in the bucket: the files are gone, but for the audio.
    status, seen = audited(run)
    assert (status, seen["compliant"], seen["incomplete"]) == (3, 0, 2)
    assert [row["evidenceType"] for row in seen["missing"] if row["NEVER_REQUESTED"] + row["EXPIRED"]] == [
        "POV",
        "DOC_CONTRATANTE",
    ]
    assert seen["source"]["lastSync"] is not None
    assert seen["source"]["embedded"] == []

    _, contract = story.record("bad", "DOC_CONTRATANTE")
    _, kyc = story.record("good", "KYC")
    for key in (contract, kyc):
        s3.put_object(Bucket=bucket, Key=key, Body=PDF)
    assert audited(run)[0] == 0


def test_a_report_lands_in_the_folder(run, story, tmp_path):
    out = tmp_path / "a b" / "reports"
    shown = run("--quiet", "report", "--no-sync", "--out", out)
    names = [f"missing-evidence.{each}" for each in ("html", "xlsx", "csv", "json")]
    assert shown.out.splitlines() == [str(out / name) for name in names]
    assert "1 of 2 sales lacks evidence." in shown.err
    with (out / "missing-evidence.csv").open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    expected = {"saleId": "bad", "utilityGroup": "B", "status": "incomplete", "missing": "POV|DOC_CONTRATANTE"}
    assert row == row | expected | {"problems": "", "cpf": "***.982.247-**"}
    for path in out.iterdir():
        assert b"52998224725" not in path.read_bytes()
        assert b"Souza" not in path.read_bytes()


def test_a_report_fails_on_what_it_is_asked_to_and_is_written_anyway(run, story, tmp_path):
    for fail_on, status in (("incomplete", 3), ("conflict", 0), ("any", 3)):
        out = tmp_path / fail_on
        run("-q", "report", "--no-sync", "--format", "csv", "--out", out, "--fail-on", fail_on, ends=status)
        assert (out / "missing-evidence.csv").exists()


@pytest.mark.parametrize(
    ("setting", "file", "folder"), [("0640", 0o640, 0o750), ("0600", 0o600, 0o700), ("644", 0o644, 0o755)]
)
def test_a_setting_says_who_may_read_a_report(run, story, tmp_path, setting, file, folder):
    out = tmp_path / "made" / "here"
    before = os.umask(0o022)
    try:
        run("-q", "report", "--no-sync", "--format", "csv", "--out", out, TOOLKIT_FILE_MODE=setting)
        assert os.umask(0o022) == 0o022
    finally:
        os.umask(before)
    assert {stat.S_IMODE(path.stat().st_mode) for path in out.iterdir()} == {file}
    assert {stat.S_IMODE(path.stat().st_mode) for path in (out, out.parent)} == {folder}


def test_whole_cpfs_are_shown_on_request_only(run, story, tmp_path):
    command = ["report", "--no-sync", "--show-cpf", "--out", str(tmp_path)]
    for no_reason in ([], ["--reason", " "]):
        run("--quiet", *command, *no_reason, ends=2)
    assert not any(tmp_path.iterdir())
    run("--quiet", *command, "--reason", "request 7")
    assert "52998224725" in (tmp_path / "missing-evidence.csv").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (["report", "--as-of", "yesterday"], "'yesterday' is not a time; write it like 2026-11-20"),
        (
            ["report", "--format", "html,pptx"],
            "Unknown report format (pptx); there are html, xlsx, csv, json, pdf",
        ),
        (["report", "--fail-on", "everything"], "'everything' is not one of"),
    ],
)
def test_wrong_usage_says_what_is_right(run, args, complaint):
    assert complaint in " ".join(run("--quiet", *args, ends=2).err.split())


def test_verify_tells_what_became_of_each_file(run, story, tmp_path):
    out = str(tmp_path / "report")
    assert "There is no report in" in run("--quiet", "verify", out, ends=1, within={}).err
    assert "nowhere/audit.json: no such file." in run("report", "--audit", "nowhere", ends=1, within={}).err
    run("--quiet", "report", "--no-sync", "--format", "csv,html", "--out", out)
    assert run("--quiet", "verify", out, within={}).out.splitlines() == [
        f"as written  {out}/missing-evidence.html",
        f"as written  {out}/missing-evidence.csv",
        "2 files of 1 report: all as written",
    ]
    (tmp_path / "report" / "missing-evidence.csv").write_text("nothing is missing", encoding="utf-8")
    assert f"changed     {out}/missing-evidence.csv" in run("--quiet", "verify", out, ends=3, within={}).out
