"""A report carries its proof, which strangers check, and witnesses and authorities sign; forgeries are named."""

import json
import re
import shutil
import subprocess
from base64 import b64decode, b64encode
from datetime import UTC, datetime
from hashlib import sha256
from itertools import count
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from proofbundle.tlogproof import verify_tlog_proof

from tests.support.scripted_server import Answer, scripted
from tests.support.uploaded_sales import FIRST, Story, add_sale, day, rows
from toolkit.errors import InvalidInput, UnreadableFile
from toolkit.kit.connection import Kit
from toolkit.log.attestations import ask_authority, ask_witness, keep_cosignature, request_for, stamped_at
from toolkit.log.bundle import BUNDLE, proven, verify_bundle
from toolkit.log.merkle import is_consistent, leaf_hash
from toolkit.log.notes import COSIGNATURE, Checkpoint, EntryProof, LogSigner, VerifierKey, text_of

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


def test_strangers_accept_a_report_whose_entry_names_its_files_and_the_manifest_its_state(reports):
    first, second, known = reports
    assert_strangers_accept(first)
    assert_strangers_accept(second)
    assert set(BUNDLE) <= {path.name for path in first.iterdir()}
    entry = json.loads((first / "entry.json").read_text())
    manifest = json.loads((first / "manifest.json").read_text())
    assert entry["kind"] == "REPORTED"
    written = {each["name"]: each["sha256"] for each in manifest["files"]}
    assert {name: entry["detail"]["files"][name] for name in written} == written
    state = Checkpoint.parse(known.opens((first / "checkpoint").read_text()))
    shown = json.loads((first / "missing-evidence.json").read_text())["source"]["seal"]
    assert state.root.hex() == manifest["custodySeal"] != shown
    assert (first / "entry.json.tlog-proof").stat().st_size < 4000


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


def taken(*names):
    """Copy files of the second report over those of the first."""
    return lambda a, b: [shutil.copy(b / each, a) for each in names]


ANOTHER_STATE, ANOTHER_ENTRY = "checkpoint is another one", "entry.json is not the entry that was signed"
ADDED = ("more.csv", "checkpoint.csv", "-emissing-evidence.csv", "..csv", ".csv", "missing-evidence.html")
FORGERIES = [
    (edited("missing-evidence.csv", "", "x"), "files", "missing-evidence.csv is not what was"),
    (lambda a, _: (a / "missing-evidence.csv").unlink(), "files", "missing-evidence.csv is missing"),
    *((lambda a, _, name=name: (a / name).write_text("x"), "files", f"{name} was added") for name in ADDED),
    (lambda a, _: (a / "SHA256SUMS").unlink(), "files", "SHA256SUMS is missing"),
    (edited("SHA256SUMS", ".csv", "x"), "files", "SHA256SUMS is not the one that entry.json names"),
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


@pytest.fixture
def kit(database, embedded_environment, clock):
    """A kit whose custody log is sealed."""
    clock.now = day(9)
    story = Story(database)
    story.sale("S-1", partner="Norte")
    story.synced(FIRST)
    with Kit(embedded_environment, clock=clock) as kit:
        kit.seal_log()
        yield kit


def test_what_was_added_in_a_folder_of_a_bundle_is_named(run, kit, tmp_path):
    """Where an engine wrote a table as a folder of parts, whoever reads it reads a part that was added."""
    place = tmp_path / "bundle"
    (place / "verdicts.parquet").mkdir(parents=True)
    (place / "verdicts.parquet" / "0.parquet").write_bytes(b"x")
    # An input of an audit is kept for the newest audits only.
    files = {"verdicts.parquet/0.parquet": sha256(b"x").hexdigest(), "sales.parquet": sha256(b"y").hexdigest()}
    _, proof = proven(kit.record_report, files, {})
    _, outside = proven(kit.record_report, {"/etc/hostname": sha256(b"x").hexdigest()}, {})
    for name, content in proof.items():
        (place / name).write_bytes(content)
    for name, status, told in (
        ("annex/contract.csv", 0, "Files as they were written: 1. Nothing proves annex/."),
        ("verdicts.parquet/note.txt", 0, "Nothing proves annex/, verdicts.parquet/note.txt."),
        ("manifest.json", 0, "Nothing proves annex/, manifest.json, verdicts.parquet/note.txt."),
        ("VERIFY.md", 0, "Nothing proves VERIFY.md, annex/, manifest.json, verdicts.parquet/note.txt."),
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


VECTORS = Path(__file__).parents[1] / "data" / "log"
PRIVATE = Ed25519PrivateKey.from_private_bytes(b"\x07" * 32)
AUDITOR = VerifierKey("auditor.example.com/witness", PRIVATE.public_key().public_bytes_raw(), COSIGNATURE)
NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)


def cosigned(note, moment=NOW, key=AUDITOR, private=PRIVATE):
    """The line with which the auditor, or somebody else, signs a checkpoint."""
    seconds = int(moment.timestamp())
    signature = private.sign(f"cosignature/v1\ntime {seconds}\n{text_of(note)}".encode())
    raw = key.key_id + seconds.to_bytes(8, "big") + signature
    return f"— {key.name} {b64encode(raw).decode()}\n"


def state_of(kit):
    """The newest checkpoint of the log, as a witness is asked to sign it."""
    return request_for(kit.database).partition("\n\n")[2]


def test_the_cosignature_of_others_is_read_and_no_other_text_key_or_line():
    key = VerifierKey.parse((VECTORS / "witness.vkey").read_text(), COSIGNATURE)
    text, line = text_of((VECTORS / "checkpoint").read_text()), (VECTORS / "checkpoint.cosigs").read_text()
    assert key.cosigned_at(text, line) == datetime.fromtimestamp(1795392000, UTC)
    assert key.cosigned_at(text.replace("\n7\n", "\n8\n"), line) is None
    assert AUDITOR.cosigned_at(text, line) is None
    assert key.cosigned_at(text, line.replace("A", "B", 1)) is None
    with pytest.raises(UnreadableFile):  # the key of a log signs without a time
        VerifierKey.parse((VECTORS / "log.vkey").read_text(), COSIGNATURE)


def test_a_request_goes_on_from_what_the_witness_signed_last(kit):
    head, _, note = request_for(kit.database, AUDITOR).partition("\n\n")
    assert head == "old 0"
    size, signed_at = keep_cosignature(kit.database, AUDITOR, f"— somebody else AAAA\n{cosigned(note)}", NOW)
    assert signed_at == NOW

    Story(kit.database).sale("S-2", partner="Norte")
    kit.seal_log()
    head, _, newer = request_for(kit.database, AUDITOR).partition("\n\n")
    told, *lines = head.split("\n")
    assert told == f"old {size}"
    old, new = Checkpoint.parse(text_of(note)), Checkpoint.parse(text_of(newer))
    assert is_consistent(old.size, old.root, new.size, new.root, [b64decode(each) for each in lines])


def test_what_is_no_signature_of_the_witness_is_not_kept(kit):
    note = state_of(kit)
    other = VerifierKey("other.example.com/witness", AUDITOR.public, COSIGNATURE)
    for line in (cosigned(note, key=other), cosigned(f"x{note}"), "", "— auditor.example.com/witness AAAA\n"):
        with pytest.raises(InvalidInput, match="No line is a signature of auditor"):
            keep_cosignature(kit.database, AUDITOR, line, NOW)
    itself = VerifierKey("log", kit.log_signer.verifier.public, COSIGNATURE)
    with pytest.raises(InvalidInput, match="The key of the log is no witness of it"):
        keep_cosignature(kit.database, itself, cosigned(note), NOW)


def test_a_witness_is_asked_over_http_and_tells_the_size_that_it_knows(kit, monkeypatch):
    note = state_of(kit)
    known = Checkpoint.parse(text_of(note)).size
    Story(kit.database).sale("S-2", partner="Norte")
    kit.seal_log()
    newer = state_of(kit)
    answers = [Answer(409, f"{known}\n".encode()), Answer(200, cosigned(newer).encode())]
    with scripted(*answers) as server:
        size, _ = ask_witness(kit.database, AUDITOR, server.url, NOW)
        assert [each.path for each in server.requests] == ["/add-checkpoint"] * 2
        assert [each.body.split(b"\n")[0] for each in server.requests] == [b"old 0", f"old {known}".encode()]
    assert size == Checkpoint.parse(text_of(newer)).size
    for answer, told in (
        (Answer(422, b"no"), "refused: status 422. 'no'"),
        (Answer(500, b"\x1b[2JOK"), "refused: status 500. '.x1b.2JOK'"),
        (Answer(409, b"9" * 5000), "refused: status 409"),
        (Answer(409, b"999"), "and the witness knows 999: its end was cut off"),
        (Answer(200, b"x" * (1 << 20) + b"x"), "is too long, or comes too slowly"),
    ):
        with scripted(answer) as server, pytest.raises(InvalidInput, match=told):
            ask_witness(kit.database, AUDITOR, server.url, NOW)
    monkeypatch.setattr("toolkit.log.attestations.monotonic", count(0, 60).__next__)
    with scripted(Answer(200, b"x")) as server, pytest.raises(InvalidInput, match="comes too slowly"):
        ask_witness(kit.database, AUDITOR, server.url, NOW)
    with pytest.raises(InvalidInput, match="begins with https"):
        ask_witness(kit.database, AUDITOR, "http://witness.example.com", NOW)


def test_a_report_is_verified_with_its_witness_and_another_history_is_named(kit, run, tmp_path):
    kit.audit(sync=False).report(tmp_path / "reports", formats="csv")
    key, answer = tmp_path / "auditor.vkey", tmp_path / "answer"
    key.write_text(f"{AUDITOR}\n")
    checkpoint = (tmp_path / "reports" / "checkpoint").read_text("utf-8")
    answer.write_text(cosigned(checkpoint), "utf-8")
    verify = ("log", "verify", str(tmp_path / "reports"), "--witness", str(key))
    assert "witness     FAILED     auditor.example.com/witness did not sign" in run(*verify, ends=3).out

    place = ("--witness", str(key), "--beside", str(tmp_path / "reports"))
    told = run("log", "cosign", str(answer), *place).out
    assert "auditor.example.com/witness signed the log of" in told
    signed = "witness     holds      Signed by auditor.example.com/witness (2026-03-10T12:00:00+00:00)."
    assert signed in run(*verify).out
    assert "as written" in run("verify", str(tmp_path / "reports")).out

    # The signature under the state of another history is none of this one.
    cosigs = tmp_path / "reports" / "checkpoint.cosigs"
    cosigs.write_text(cosigned(checkpoint.replace("\n", "x\n", 1)), "utf-8")
    assert "did not sign this state" in run(*verify, ends=3).out
    # Two histories that two people were shown: one of them signed another one than this.
    private = Ed25519PrivateKey.generate()
    second = VerifierKey("second.example.com/witness", private.public_key().public_bytes_raw(), COSIGNATURE)
    other = cosigned(checkpoint.replace("\n", "x\n", 1), key=second, private=private)
    cosigs.write_text(cosigned(checkpoint) + other, "utf-8")
    assert "second.example.com/witness did not sign" in run(*verify, "--witness", str(second), ends=3).out
    # One witness under two names is not two.
    alias = VerifierKey("alias.example.com/witness", AUDITOR.public, COSIGNATURE)
    cosigs.write_text(cosigned(checkpoint) + cosigned(checkpoint, key=alias), "utf-8")
    assert "have one key: they are the same" in run(*verify, "--witness", str(alias), ends=3).out
    kit.audit(sync=False).report(tmp_path / "reports", formats="csv")
    assert not cosigs.exists()  # it went to history with the report that it is about


CONFIG = """
[tsa]
dir = {0}
serial = {0}/serial
signer_cert = {0}/tsa.pem
signer_key = {0}/tsa.key
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha1, sha256, sha512
ess_cert_id_alg = sha256
"""
STAMPS = "basicConstraints=CA:FALSE\nkeyUsage=critical,digitalSignature\nextendedKeyUsage=critical,timeStamping\n"
REPLY = ("ts", "-reply", "-config", "config", "-section", "tsa", "-queryfile", "query", "-out", "reply")


def openssl(*arguments, cwd):
    return subprocess.run(["openssl", *map(str, arguments)], cwd=cwd, capture_output=True, text=True, check=False)


def made_authority(place, name):
    """Make a root and a certificate that it signed for time stamps."""
    place.mkdir()
    new = ("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30")
    openssl(*new, "-subj", f"/CN={name}", "-keyout", "root.key", "-out", "root.pem", cwd=place)
    ask = ("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name} stamps")
    openssl(*ask, "-keyout", "tsa.key", "-out", "tsa.csr", cwd=place)
    (place / "extensions").write_text(STAMPS)
    sign = ("x509", "-req", "-in", "tsa.csr", "-CA", "root.pem", "-CAkey", "root.key", "-CAcreateserial")
    openssl(*sign, "-days", "20", "-extfile", "extensions", "-out", "tsa.pem", cwd=place)
    (place / "serial").write_text("01\n")
    (place / "config").write_text(CONFIG.format(place))
    return place


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    """The folder of an authority, and its address."""
    place = made_authority(tmp_path_factory.mktemp("tsa") / "one", "Authority")

    def stamped(asked):
        query = asked.body
        if asked.path == "/other":  # it stamps another hash than it was given
            query = re.sub(rb"\x04\x20.{32}", b"\x04\x20" + b"x" * 32, query, count=1, flags=re.DOTALL)
        (place / "query").write_bytes(query)
        openssl(*REPLY, cwd=place)
        return Answer(200, (place / "reply").read_bytes())

    with scripted(stamped) as server:
        yield place, server.url


@needs_openssl
def test_a_report_is_stamped_and_anybody_checks_it(kit, authority, database, run, tmp_path):
    place, url = authority
    reports = tmp_path / "reports"
    kit.audit(sync=False).report(reports, formats="csv")
    verify = ("log", "verify", str(reports), "--tsa", str(place / "root.pem"))
    assert "time        FAILED     There is no time stamp" in run(*verify, ends=3).out
    told = run("log", "timestamp", "--url", url, "--beside", reports).out
    assert "entries was stamped at 20" in told
    assert "time        holds      Stamped at 20" in run(*verify).out
    check = ("ts", "-verify", "-data", "checkpoint", "-in", "checkpoint.tsr", "-CAfile", place / "root.pem")
    assert "Verification: OK" in openssl(*check, "-untrusted", place / "tsa.pem", cwd=reports).stdout
    [(detail,)] = rows(database, "SELECT detail FROM audit.custody_events WHERE kind = 'TIMESTAMPED'")
    assert set(detail) == {"size", "token"}

    # An entry that says a later time than the stamp: the clock of who wrote it was wrong, or turned.
    entry = (reports / "entry.json").read_bytes()
    (reports / "entry.json").write_bytes(re.sub(rb'"at":"\d+', b'"at":"2999', entry))
    assert "time        FAILED     The entry says that it is of 2999" in run(*verify, ends=3).out
    (reports / "entry.json").write_bytes(entry)

    # A stamp over another hash, which somebody else asked for, holds as well; one over SHA-1 is not called false.
    kept = (reports / "checkpoint.tsr").read_bytes()
    for name, told in (("-sha512", "holds      Stamped at 20"), ("-sha1", "not known  The time stamp cannot be")):
        openssl("ts", "-query", "-data", reports / "checkpoint", name, "-cert", "-out", "query", cwd=place)
        openssl(*REPLY, cwd=place)
        (reports / "checkpoint.tsr").write_bytes((place / "reply").read_bytes())
        assert f"time        {told}" in run(*verify).out
    (reports / "checkpoint.tsr").write_bytes(kept)

    # The token of another bundle, another authority's root, and a token that nothing here can read.
    note = (reports / "checkpoint").read_bytes()
    token = (reports / "checkpoint.tsr").read_bytes()
    assert stamped_at(token, note + b"x", place / "root.pem") is False
    other = made_authority(tmp_path / "other", "Other")
    assert stamped_at(token, note, other / "root.pem") is False
    kit.audit(sync=False).report(tmp_path / "later", formats="csv")
    run("log", "timestamp", "--url", url, "--beside", tmp_path / "later")
    (reports / "checkpoint.tsr").write_bytes((tmp_path / "later" / "checkpoint.tsr").read_bytes())
    assert "time        FAILED     The time stamp is not one of this checkpoint" in run(*verify, ends=3).out
    (reports / "checkpoint.tsr").write_bytes(token[:100])
    assert "time        not known  The time stamp cannot be read here. Try: openssl ts" in run(*verify).out
    with pytest.raises(UnreadableFile, match="no certificates"):
        stamped_at(token, note, reports / "checkpoint")


@needs_openssl
def test_what_the_authority_refuses_or_mistakes_is_not_kept(kit, authority, database):
    with scripted(Answer(500)) as server, pytest.raises(InvalidInput, match="refused: status 500"):
        ask_authority(kit.database, server.url, kit.clock())
    _, told_at = ask_authority(kit.database, authority[1], kit.clock())
    assert told_at is not None
    [(token,)] = rows(database, "SELECT token FROM audit.log_timestamps")
    with scripted(Answer(200, bytes(token))) as server, pytest.raises(InvalidInput, match="something else"):
        ask_authority(kit.database, server.url, kit.clock())  # an old answer, whose nonce is another one
    with pytest.raises(InvalidInput, match="something else"):
        ask_authority(kit.database, f"{authority[1]}/other", kit.clock())
    with scripted(Answer(200, b"<html>")) as server, pytest.raises(InvalidInput, match="something else"):
        ask_authority(kit.database, server.url, kit.clock())
    assert len(rows(database, "SELECT token FROM audit.log_timestamps")) == 1
