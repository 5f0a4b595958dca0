"""Sales: shown with their rule, files and time line, and given away as a dossier."""

import hmac
import json
import shutil
import subprocess
from datetime import timedelta
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import httpx
import pypdf
import pytest

from tests.integration.test_custody_proof import HAS_PROGRAMS, script
from tests.support.evidence_files import pdf, silence
from tests.support.report_figures import everything_in, packed_cases
from tests.support.uploaded_sales import MONDAY, add_sale, execute, rows
from tests.support.waiting import PATIENCE, wait_until
from toolkit.kit.process import signed_in_account
from toolkit.log.bundle import verify_bundle


@pytest.fixture
def told(run, embedded_environment, database, put, add_file):
    """A sale with a recording that was replaced after an audit, a document, and a KYC that was withdrawn."""
    Path(embedded_environment["TOOLKIT_HOME"], "custody-log.key").write_text("k" * 64)  # sales have keys then
    add_sale(database)
    ids, keys = {}, {}
    files = {"POV": silence(3.0), "DOC_CONTRATANTE": pdf(pages=2), "KYC": pdf()}
    for minute, (evidence_type, body) in enumerate(files.items()):
        requested_at = MONDAY + timedelta(minutes=minute)
        given = {"file_name": "Ana Souza.pdf", "requested_at": requested_at}
        ids[evidence_type], keys[evidence_type] = add_file("sale-1", evidence_type, body, **given)
    people = ["--reason", "sent twice", "--by", "ana", "--approved-by", "bruno"]
    run("evidence", "withdraw", ids["KYC"], *people)
    run("--quiet", "findings", ends=3)
    put(keys["POV"], silence(4.0))
    return ids


def test_a_link_opens_a_file_for_a_while_and_is_kept_with_who_and_why(run, told, database):
    asked = ["evidence", "link", str(told["DOC_CONTRATANTE"]), "--by", "ana", "--reason", "complaint"]
    made = run(*asked, "--json").told
    assert httpx.get(made["url"], timeout=PATIENCE).content.startswith(b"%PDF-")
    [(detail,)] = rows(database, "SELECT detail FROM audit.custody_events WHERE kind = 'OPENED'")
    who = {"by": "ana", "reason": "complaint", "account": signed_in_account()}
    query = "SELECT opened_by, reason, account FROM audit.evidence_openings"
    assert rows(database, query) == [tuple(who.values())]
    assert who.keys() <= detail.keys()
    assert all(detail[name] == sha256(text.encode()).hexdigest() for name, text in who.items())
    short = run(*asked, "--seconds", "1", "--json").told["url"]
    wait_until(lambda: httpx.get(short, timeout=PATIENCE).status_code == 403)
    longer = made["url"].replace("X-Amz-Expires=300", "X-Amz-Expires=900")
    assert httpx.get(longer, timeout=PATIENCE).status_code == 403


def test_a_report_holds_the_case_of_each_sale_as_it_is_shown_alone(run, told, database, tmp_path):
    execute(database, "UPDATE sales SET partner = 'Norte Energia'")
    add_sale(database, "other-1", utility_group="E", partner="Sul/Ltda")
    command = ["--quiet", "report", "--out", str(tmp_path), "--per-partner", "--format", "html,json"]
    run(*command)
    document = json.loads((tmp_path / "missing-evidence.json").read_text())
    assert [each["approvedBy"] for each in document["withdrawals"]] == ["bruno"]
    cases = packed_cases((tmp_path / "missing-evidence.html").read_text())
    [case] = [each for each in cases.values() if each["records"]]
    shown = run("sale", "show", "sale-1", "--json").told
    for ours, theirs in zip(case["records"], shown["records"], strict=True):
        names = ("size", "seconds", "pages", "coverage", "fault")
        assert (ours["id"], ours["type"], ours["state"]) == (theirs["id"], theirs["evidenceType"], theirs["state"])
        assert [ours[name] for name in names] == [theirs["file"][name] for name in names]
        assert theirs["file"]["sha256"].startswith(ours["sha256"])
        assert ours["approvedBy"] == (theirs["withdrawal"] or {}).get("approvedBy")
    ids = [each["id"] for each in case["records"]]
    told_there = [(each["kind"], each["evidenceId"]) for each in shown["timeline"]]
    assert [(each["kind"], ids[each["record"]]) for each in case["events"]] == told_there
    assert {each["code"] for each in case["findings"]} == {each["code"] for each in shown["findings"]}
    assert "Ana Souza" not in everything_in(tmp_path / "missing-evidence.html")
    run(*command, "--partner", "Sul/Ltda", "--out", str(tmp_path / "sul"))
    [sul] = (tmp_path / "sul" / "partners").iterdir()
    assert [each.name == sul.name for each in sorted((tmp_path / "partners").iterdir())] == [False, True]


def texts(path):
    with ZipFile(path) as archive:
        document = pypdf.PdfReader(BytesIO(archive.read("dossier.pdf")))
    return " ".join(" ".join(page.extract_text() for page in document.pages).replace("\u200b", "").split())


def test_a_dossier_opens_without_the_toolkit(run, database, told, tmp_path):
    why = ["--with-files", "--reason", "Request 12 of the regulator"]
    path = run("dossier", "sale-1", "--out", tmp_path / "out", *why).out.strip()
    with ZipFile(path) as archive:
        archive.extractall(tmp_path / "opened")
        names = [name for name in archive.namelist() if not name.startswith("proofs/")]
    files = ["files/1-POV.pdf", "files/2-DOC_CONTRATANTE.pdf", "files/3-KYC.pdf"]
    assert names == ["dossier.pdf", "sale.json", "README.txt", *files, "SHA256SUMS"]
    subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=tmp_path / "opened", check=True)
    told = json.loads((tmp_path / "opened" / "sale.json").read_text("utf-8"))
    assert (told["saleId"], told["status"]) == ("sale-1", "incomplete")
    text = texts(path)
    assert "differs from what was verified" in text
    assert "as verified" in text
    assert "sha256sum -c SHA256SUMS" in text
    assert "Ana Souza" not in text
    events = rows(database, "SELECT kind, detail FROM audit.custody_events")
    proven = {}
    for proof in (tmp_path / "opened" / "proofs").iterdir():
        assert verify_bundle(proof)["inclusion"].holds
        proven[int(proof.name)] = json.loads((proof / "entry.json").read_text("utf-8"))["kind"]
    assert {"UPLOADED", "VERIFIED", "OPENED"} <= set(proven.values())
    digest = sha256(Path(path).read_bytes()).hexdigest()
    assert {"dossier.zip": digest} in [detail["files"] for kind, detail in events if kind == "REPORTED"]
    assert [kind for kind, _ in events].count("OPENED") == 3


def test_a_dossier_opens_single_fields_of_the_log_to_strangers(run, told, tmp_path):
    """Recomputed by hashlib and by openssl; what the dossier does not show stays closed."""

    def opened(*words):
        path = run("dossier", "sale-1", "--out", tmp_path, *words).out.strip()
        shutil.rmtree(tmp_path / "opened", ignore_errors=True)
        with ZipFile(path) as archive:
            archive.extractall(tmp_path / "opened")
        return sorted((tmp_path / "opened" / "proofs").glob("*/*.opened"))

    def kept(file):
        """The kind of the event, and what its entry holds in the field of that name."""
        entry = json.loads(file.with_name("entry.json").read_text("utf-8"))
        return entry["kind"], entry["detail"][file.stem]

    closed = opened()
    assert {(kept(each)[0], each.stem) for each in closed} == {
        ("VERIFIED", "sha256"), ("WITHDRAWN", "by"), ("WITHDRAWN", "approvedBy"), ("WITHDRAWN", "reason")
    }  # fmt: skip
    files = opened("--unmask", "--reason", "Processo 7", "--with-files")
    names = {(kept(each)[0], each.stem) for each in files} - {(kept(each)[0], each.stem) for each in closed}
    assert names == {("UPLOADED", "key")}
    for file in files:
        key, value, *text = file.read_text("utf-8").splitlines()
        assert hmac.new(bytes.fromhex(key), value.encode(), "sha256").hexdigest() == kept(file)[1]
        assert [sha256(each.encode()).hexdigest() for each in text] in ([value], [])
        # This key opens no other field: neither another one of the event nor that of another event.
        others = [each for each in files if each != file]
        assert kept(file)[1] not in [kept(each)[1] for each in others]
        assert key not in [each.read_text("utf-8").splitlines()[0] for each in others]
        found = verify_bundle(file.parent)
        assert (found["files"].holds, found["inclusion"].holds) == (True, True)
    contents = {each.read_text("utf-8").splitlines()[1] for each in files if each.stem == "sha256"} & {
        sha256(each.read_bytes()).hexdigest() for each in (tmp_path / "opened" / "files").iterdir()
    }
    assert len(contents) == 2

    file = next(each for each in files if each.stem == "approvedBy")
    if HAS_PROGRAMS:
        line = (tmp_path / "opened" / "proofs" / file.parent.name / "VERIFY.md").read_text("utf-8")
        command = next(part for part in line.split("`") if part.startswith("sed -n 2p FIELD"))
        done = subprocess.run(
            ["sh", "-c", command.replace("FIELD", "approvedBy")], cwd=file.parent, capture_output=True, check=True
        )
        assert done.stdout.decode().split()[-1] == kept(file)[1]
        assert script(file.parent)[0] == 0
    lines = file.read_text("utf-8").splitlines()
    for forged in (["ff" * 32, *lines[1:]], [*lines[:2], "Ana Souza"], [lines[0], "ff" * 32], ["x"]):
        file.write_text("\n".join(forged) + "\n", "utf-8")
        assert "approvedBy.opened is not what entry.json holds" in run("log", "verify", file.parent, ends=3).out
        if HAS_PROGRAMS:
            assert script(file.parent)[0] == 1


def test_personal_data_and_files_need_a_reason_and_stay_out_without_one(run, database, told, tmp_path):
    spoken = {"TOOLKIT_LANGUAGE": "pt-BR"}
    path = run("dossier", "sale-1", "--out", tmp_path, "--unmask", "--reason", "Processo 7", **spoken).out.strip()
    text = texts(path)
    assert "Dossiê da venda sale-1" in text
    assert "Ana%20Souza.pdf" in text or "Ana Souza.pdf" in text
    with ZipFile(path) as archive:
        assert not [name for name in archive.namelist() if name.startswith("files/")]
        assert "O que isto mostra" in text
    told = rows(database, "SELECT detail ->> 'reason' FROM audit.custody_events WHERE kind = 'UNMASKED'")
    assert told == [("Processo 7",)]
