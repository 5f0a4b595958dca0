"""The dossier of one sale: a ZIP that somebody without the toolkit opens, reads and checks."""

import hmac
import json
import shutil
import subprocess
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import pypdf
import pytest

from tests.integration.test_custody_proof import HAS_PROGRAMS
from tests.support.evidence_files import pdf, silence
from tests.support.uploaded_sales import add_sale, rows
from toolkit.contract.evidence import EvidenceType
from toolkit.log.bundle import verify_bundle


@pytest.fixture
def asked_for(run, database, put, add_file):
    """A sale whose recording was replaced after it was verified."""
    add_sale(database)
    _, key = add_file("sale-1", EvidenceType.POV, silence(3.0), file_name="Ana Souza.pdf")
    add_file("sale-1", EvidenceType.DOC_CONTRATANTE, pdf(pages=2), file_name="Ana Souza.pdf")
    run("--quiet", "audit", ends=3)
    put(key, silence(4.0))


def texts(path):
    with ZipFile(path) as archive:
        document = pypdf.PdfReader(BytesIO(archive.read("dossier.pdf")))
    return " ".join(" ".join(page.extract_text() for page in document.pages).replace("\u200b", "").split())


def test_a_dossier_opens_without_the_toolkit(run, database, asked_for, tmp_path):
    why = ["--with-files", "--reason", "Request 12 of the regulator"]
    path = run("dossier", "sale-1", "--out", tmp_path / "out", *why).out.strip()
    with ZipFile(path) as archive:
        archive.extractall(tmp_path / "opened")
        names = [name for name in archive.namelist() if not name.startswith("proofs/")]
    files = ["files/1-POV.pdf", "files/2-DOC_CONTRATANTE.pdf"]
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
    assert {"UPLOADED", "VERIFIED"} <= set(proven.values())
    digest = sha256(Path(path).read_bytes()).hexdigest()
    assert {"dossier.zip": digest} in [detail["files"] for kind, detail in events if kind == "REPORTED"]
    assert [kind for kind, _ in events].count("OPENED") == 2


def test_a_dossier_opens_single_fields_of_the_log_to_strangers(run, database, asked_for, tmp_path):
    """Recomputed by hashlib and by openssl; what the dossier does not show stays closed."""

    def opened(*words):
        path = run("dossier", "sale-1", "--out", tmp_path, *words).out.strip()
        shutil.rmtree(tmp_path / "opened", ignore_errors=True)
        with ZipFile(path) as archive:
            archive.extractall(tmp_path / "opened")
        return sorted((tmp_path / "opened" / "proofs").glob("*/*.opened"))

    def told(file):
        """The kind of the event, and what its entry holds in the field of that name."""
        entry = json.loads(file.with_name("entry.json").read_text("utf-8"))
        return entry["kind"], entry["detail"][file.stem]

    run("evidence", "withdraw", *withdrawn(database), "--by", "Ana Souza", "--approved-by", "Rui Lima")
    closed = opened()
    assert {(told(each)[0], each.stem) for each in closed} == {
        ("VERIFIED", "sha256"), ("WITHDRAWN", "by"), ("WITHDRAWN", "approvedBy"), ("WITHDRAWN", "reason")
    }  # fmt: skip
    files = opened("--unmask", "--reason", "Processo 7", "--with-files")
    names = {(told(each)[0], each.stem) for each in files} - {(told(each)[0], each.stem) for each in closed}
    assert names == {("UPLOADED", "key")}
    for file in files:
        key, value, *text = file.read_text("utf-8").splitlines()
        assert hmac.new(bytes.fromhex(key), value.encode(), "sha256").hexdigest() == told(file)[1]
        assert [sha256(each.encode()).hexdigest() for each in text] in ([value], [])
        # This key opens no other field: neither another one of the event nor that of another event.
        others = [each for each in files if each != file]
        assert told(file)[1] not in [told(each)[1] for each in others]
        assert key not in [each.read_text("utf-8").splitlines()[0] for each in others]
        found = verify_bundle(file.parent)
        assert (found["files"].holds, found["inclusion"].holds) == (True, True)
    [contents] = {each.read_text("utf-8").splitlines()[1] for each in files if each.stem == "sha256"} & {
        sha256(each.read_bytes()).hexdigest() for each in (tmp_path / "opened" / "files").iterdir()
    }
    assert contents

    file = next(each for each in files if each.stem == "approvedBy")
    entry = json.loads(file.with_name("entry.json").read_text("utf-8"))["detail"]
    if HAS_PROGRAMS:
        line = (tmp_path / "opened" / "proofs" / file.parent.name / "VERIFY.md").read_text("utf-8")
        command = next(part for part in line.split("`") if part.startswith("sed -n 2p FIELD"))
        done = subprocess.run(
            ["sh", "-c", command.replace("FIELD", "approvedBy")], cwd=file.parent, capture_output=True, check=True
        )
        assert done.stdout.decode().split()[-1] == entry["approvedBy"]
        assert (
            subprocess.run(["sh", "verify.sh"], cwd=file.parent, capture_output=True, check=False).returncode == 0
        )
    lines = file.read_text("utf-8").splitlines()
    for forged in (["ff" * 32, *lines[1:]], [*lines[:2], "Ana Souza"], [lines[0], "ff" * 32], ["x"]):
        file.write_text("\n".join(forged) + "\n", "utf-8")
        assert "approvedBy.opened is not what entry.json holds" in run("log", "verify", file.parent, ends=3).out
        if HAS_PROGRAMS:
            script = subprocess.run(["sh", "verify.sh"], cwd=file.parent, capture_output=True, check=False)
            assert script.returncode == 1


def withdrawn(database):
    """The arguments that name a record and a reason."""
    [(record,)] = rows(database, "SELECT id FROM evidences WHERE evidence_type = 'DOC_CONTRATANTE'")
    return str(record), "--reason", "A page is missing"


def test_personal_data_and_files_need_a_reason_and_stay_out_without_one(run, database, asked_for, tmp_path):
    assert "--reason" in run("dossier", "sale-1", "--with-files", ends=2).err
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


def test_the_name_of_a_dossier_holds_nothing_that_leads_elsewhere(run, database, tmp_path):
    add_sale(database, "../V 1/ção")
    path = run("dossier", "../V 1/ção", "--out", tmp_path).out.strip()
    assert path.startswith(f"{tmp_path}/dossier-.._V_1_")
