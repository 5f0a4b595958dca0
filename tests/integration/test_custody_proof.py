"""A report carries its proof: strangers check it by files alone, and each forgery has a sentence of its own."""

import json
import shutil
import subprocess
from hashlib import sha256

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from proofbundle.tlogproof import verify_tlog_proof

from tests.support.uploaded_sales import add_sale
from toolkit.kit.connection import Kit
from toolkit.log.bundle import BUNDLE, proven, verify_bundle
from toolkit.log.merkle import leaf_hash
from toolkit.log.notes import Checkpoint, EntryProof, LogSigner, VerifierKey

PROGRAMS = ("openssl", "base64", "sha256sum")
"""What ``verify.sh`` runs; where libraries of the system are hidden, they may be there and not start."""

HAS_PROGRAMS = all(
    shutil.which(each) and not subprocess.run([each, "--help"], capture_output=True, check=False).returncode
    for each in PROGRAMS
)
needs_openssl = pytest.mark.skipif(not HAS_PROGRAMS, reason="needs openssl; .ci/run tries it")


@pytest.fixture
def reports(run, database, tmp_path):
    """Two reports, the second one an hour of work later, and the key of the log."""
    add_sale(database)
    run("-q", "report", "--out", tmp_path / "first", "--format", "csv,json")
    run("-q", "report", "--out", tmp_path / "second", "--format", "csv")
    known = VerifierKey.parse((tmp_path / "second" / "log.vkey").read_text())
    return tmp_path / "first", tmp_path / "second", known


def script(folder, *key):
    command = ["sh", folder / "verify.sh", folder, *key]
    done = subprocess.run(command, cwd=folder.parent, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def assert_strangers_accept(folder):
    """A library that is not ours and, where there is openssl, ``verify.sh`` find the folder in the log."""
    proof, entry = (folder / "entry.json.tlog-proof").read_text(), (folder / "entry.json").read_bytes()
    key = (folder / "log.vkey").read_text().strip()
    found = verify_tlog_proof(proof, entry, key, expected_origin=key.partition("+")[0])
    assert (found["ok"], found["log_ok"], found["inclusion_ok"]) == (True, True, True)
    assert not verify_tlog_proof(proof, entry + b" ", key)["ok"]
    if HAS_PROGRAMS:
        status, said = script(folder)
        assert (status, "OK: entry" in said) == (0, True), said


def test_strangers_accept_a_report_by_programs_that_are_not_ours(reports):
    for folder in reports[:2]:
        assert_strangers_accept(folder)


def test_the_entry_of_a_report_names_its_files_and_the_manifest_its_state(run, reports):
    first, second, known = reports
    assert set(BUNDLE) <= {path.name for path in first.iterdir()}
    entry = json.loads((first / "entry.json").read_text())
    manifest = json.loads((first / "manifest.json").read_text())
    assert entry["kind"] == "REPORTED"
    written = {each["name"]: each["sha256"] for each in manifest["files"]}
    assert {name: entry["detail"]["files"][name] for name in written} == written
    state = Checkpoint.parse(known.opens((first / "checkpoint").read_text()) or "")
    shown = json.loads((first / "missing-evidence.json").read_text())["source"]["seal"]
    assert state.root.hex() == manifest["custodySeal"] != shown
    assert (first / "entry.json.tlog-proof").stat().st_size < 4000
    # The proof of another event does not replace it.
    other = json.loads((second / "entry.json").read_text())["id"]
    assert "has the proof of another event" in run("log", "prove", other, "--out", first, ends=1).err
    run("log", "prove", entry["id"], "--out", first)


@needs_openssl
def test_openssl_and_coreutils_compare_the_key_and_the_files(reports):
    first, _, _ = reports
    shutil.copy(first / "log.pem", first.parent / "known.pem")
    assert script(first, "known.pem")[0] == 0
    (first.parent / "known.pem").write_bytes(new_signer().verifier.pem())
    assert "log.vkey is another key" in script(first, "known.pem")[1]
    assert "nowhere.pem cannot be read" in script(first, "nowhere.pem")[1]
    (first / "missing-evidence.csv").write_text("x")
    status, said = script(first)
    assert (status, "a file is not what was written" in said) == (1, True)


def new_signer():
    return LogSigner("evidence-toolkit/custody", Ed25519PrivateKey.generate())


def _new_key(first, _):
    """Sign anything with another key, and lay that key beside it."""
    signer = new_signer()
    entry = (first / "entry.json").read_bytes()
    note = Checkpoint(signer.name, 1, leaf_hash(entry)).signed_by([signer])
    (first / "entry.json.tlog-proof").write_text(str(EntryProof(0, [], note)))
    (first / "checkpoint").write_text(note)
    (first / "log.vkey").write_text(f"{signer.verifier}\n")
    (first / "log.pem").write_bytes(signer.verifier.pem())


def edited(name, *change):
    """Replace a text in a file of the first report, once."""
    return lambda a, _: (a / name).write_text((a / name).read_text().replace(*change, 1))


def added(name):
    """Write one more file beside the first report."""
    return lambda a, _: (a / name).write_text("x")


def taken(*names):
    """Copy files of the second report over those of the first."""
    return lambda a, b: [shutil.copy(b / each, a) for each in names]


def cut_line(path):
    """Take the first line out of a file."""
    path.write_text(path.read_text().partition("\n")[2])


ANOTHER_STATE, ANOTHER_ENTRY = "checkpoint is another one", "entry.json is not the entry that was signed"
ADDED = ("more.csv", "checkpoint.csv", "-emissing-evidence.csv", "..csv", ".csv", "missing-evidence.html")
FORGERIES = [
    (edited("missing-evidence.csv", "", "x"), "files", "missing-evidence.csv is not what was"),
    (lambda a, _: (a / "missing-evidence.csv").unlink(), "files", "missing-evidence.csv is missing"),
    *((added(name), "files", f"{name} was added") for name in ADDED),
    (lambda a, _: (a / "SHA256SUMS").unlink(), "files", "SHA256SUMS is missing"),
    (lambda a, _: cut_line(a / "SHA256SUMS"), "files", "SHA256SUMS is not the one that entry.json names"),
    (edited("entry.json", "{", "{ "), "inclusion", ANOTHER_ENTRY),
    (taken("entry.json.tlog-proof"), "inclusion", ANOTHER_STATE),
    (taken("entry.json.tlog-proof", "checkpoint"), "inclusion", ANOTHER_ENTRY),
    (taken("checkpoint"), "inclusion", ANOTHER_STATE),
    (edited("checkpoint", "\n", "\n1"), "inclusion", ANOTHER_STATE),
    (edited("checkpoint", "", "x"), "inclusion", ANOTHER_STATE),
    (lambda a, _: (a / "entry.json.tlog-proof").write_text("index 0"), "inclusion", "is no proof"),
    (edited("entry.json.tlog-proof", "@v1", "@v2"), "inclusion", "is no proof"),
    (edited("entry.json.tlog-proof", "=\n", "= \n"), "inclusion", "is no proof"),
    (edited("entry.json.tlog-proof", "\n— ", "\nx\n— "), "inclusion", "is not signed by the key of the log"),
    (lambda a, _: (a / "log.pem").write_bytes(new_signer().verifier.pem()), "inclusion", "log.pem is another one"),
    (_new_key, "inclusion", "The key in the folder is another one"),
]
"""What is done to the first of two reports, the verdict that fails, and what is said of it."""


def test_each_forgery_is_named(run, reports, tmp_path):
    *folders, known = reports
    for number, (forge, failed, told) in enumerate(FORGERIES):
        first, second = (shutil.copytree(each, tmp_path / f"{each.name}-{number}") for each in folders)
        forge(first, second)
        found = verify_bundle(first, known)
        assert found[failed].holds is False, told
        assert told in str(found[failed].told)
        if HAS_PROGRAMS and forge is not _new_key:
            assert script(first)[0] != 0, told
    assert told in run("log", "verify", first, "--key", str(known), ends=3, within={}).out


def test_what_was_added_in_a_folder_of_a_bundle_is_named(run, embedded_environment, database, tmp_path):
    """Where an engine wrote a table as a folder of parts, whoever reads it reads a part that was added."""
    add_sale(database)
    place = tmp_path / "bundle"
    (place / "verdicts.parquet").mkdir(parents=True)
    (place / "verdicts.parquet" / "0.parquet").write_bytes(b"x")
    with Kit(embedded_environment) as kit:
        # An input of an audit is kept for the newest audits only.
        files = {"verdicts.parquet/0.parquet": sha256(b"x").hexdigest(), "sales.parquet": sha256(b"y").hexdigest()}
        _, proof = proven(kit.record_report, files, {})
        _, outside = proven(kit.record_report, {"/etc/hostname": sha256(b"x").hexdigest()}, {})
    for name, content in proof.items():
        (place / name).write_bytes(content)
    for name, status, told in (
        ("annex/contract.csv", 0, "1 files are as they were written. Nothing proves annex/."),
        ("verdicts.parquet/note.txt", 0, "Nothing proves annex/, verdicts.parquet/note.txt."),
        ("verdicts.parquet/more/1.parquet", 3, "verdicts.parquet/more/1.parquet was added: nothing proves it."),
    ):
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text("y")
        assert told in run("log", "verify", place, ends=status, within={}).out
        if HAS_PROGRAMS:
            assert script(place)[0] == min(status, 1), name
    # Files elsewhere are none of a bundle.
    for name, content in outside.items():
        (place / name).write_bytes(content)
    assert "SHA256SUMS is no proof" in run("log", "verify", place, ends=3, within={}).out
    if HAS_PROGRAMS:
        assert "SHA256SUMS is no list of files" in script(place)[1]
