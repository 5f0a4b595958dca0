"""Witnesses and authorities sign the states of the custody log, and anybody checks it afterwards."""

import re
import subprocess
from base64 import b64decode, b64encode
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.integration.test_custody_proof import needs_openssl
from tests.support.scripted_server import Answer, scripted
from tests.support.uploaded_sales import FIRST, Story, day, rows
from toolkit.errors import InvalidInput, UnreadableFile
from toolkit.kit.connection import Kit
from toolkit.log.merkle import is_consistent
from toolkit.log.notes import COSIGNATURE, Checkpoint, VerifierKey, text_of
from toolkit.log.others import ask_authority, ask_witness, keep_cosignature, request_for, stamped_at

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


@pytest.fixture
def sealed(database, embedded_environment, clock):
    """A kit whose custody log is sealed, and a story that goes on."""
    clock.now = day(9)
    environ = {**embedded_environment, "TOOLKIT_LANGUAGE": "en"}
    story = Story(database)
    story.sale("S-1", partner="Norte")
    story.synced(FIRST)
    with Kit(environ, clock=clock) as kit:
        kit.seal_log()
        yield kit, story, environ


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


def test_a_request_goes_on_from_what_the_witness_signed_last(sealed):
    kit, story, _ = sealed
    head, _, note = request_for(kit.database, AUDITOR).partition("\n\n")
    assert head == "old 0"
    size, signed_at = keep_cosignature(kit.database, AUDITOR, f"— somebody else AAAA\n{cosigned(note)}", NOW)
    assert signed_at == NOW

    story.sale("S-2", partner="Norte")
    kit.seal_log()
    head, _, newer = request_for(kit.database, AUDITOR).partition("\n\n")
    told, *lines = head.split("\n")
    assert told == f"old {size}"
    old, new = Checkpoint.parse(text_of(note)), Checkpoint.parse(text_of(newer))
    assert is_consistent(old.size, old.root, new.size, new.root, [b64decode(each) for each in lines])


def test_what_is_no_signature_of_the_witness_is_not_kept(sealed):
    kit, _, _ = sealed
    note = state_of(kit)
    other = VerifierKey("other.example.com/witness", AUDITOR.public, COSIGNATURE)
    for line in (cosigned(note, key=other), cosigned(f"x{note}"), "", "— auditor.example.com/witness AAAA\n"):
        with pytest.raises(InvalidInput, match="No line is a signature of auditor"):
            keep_cosignature(kit.database, AUDITOR, line, NOW)
    itself = VerifierKey("log", kit.log_signer.verifier.public, COSIGNATURE)
    with pytest.raises(InvalidInput, match="The key of the log is no witness of it"):
        keep_cosignature(kit.database, itself, cosigned(note), NOW)


def test_a_witness_is_asked_over_http_and_tells_the_size_that_it_knows(sealed, monkeypatch):
    kit, story, _ = sealed
    note = state_of(kit)
    known = Checkpoint.parse(text_of(note)).size
    story.sale("S-2", partner="Norte")
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
    monkeypatch.setattr("toolkit.log.others.monotonic", count(0, 60).__next__)
    with scripted(Answer(200, b"x")) as server, pytest.raises(InvalidInput, match="comes too slowly"):
        ask_witness(kit.database, AUDITOR, server.url, NOW)
    with pytest.raises(InvalidInput, match="begins with https"):
        ask_witness(kit.database, AUDITOR, "http://witness.example.com", NOW)


def test_a_report_is_verified_with_its_witness_and_another_history_is_named(sealed, run, tmp_path):
    kit, story, environ = sealed
    kit.audit(sync=False).report(tmp_path / "reports", formats="csv")
    key, answer = tmp_path / "auditor.vkey", tmp_path / "answer"
    key.write_text(f"{AUDITOR}\n")
    checkpoint = (tmp_path / "reports" / "checkpoint").read_text("utf-8")
    answer.write_text(cosigned(checkpoint), "utf-8")
    verify = ("log", "verify", str(tmp_path / "reports"), "--witness", str(key))
    assert "witness     FAILED     auditor.example.com/witness did not sign" in run(*verify, ends=3).out

    place = ("--witness", str(key), "--beside", str(tmp_path / "reports"))
    told = run("log", "cosign", str(answer), *place, within=environ).out
    assert "auditor.example.com/witness signed the log of" in told
    signed = "witness     holds      Signed by auditor.example.com/witness (2026-03-10T12:00:00+00:00)."
    assert signed in run(*verify).out
    assert "as written" in run("verify", str(tmp_path / "reports")).out

    # The signature under the state of another history, or of another size, is none of this one.
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
    story.sale("S-2", partner="Norte")
    kit.seal_log()
    cosigs.write_text(cosigned(state_of(kit)), "utf-8")
    assert "did not sign this state" in run(*verify, ends=3).out


CONFIG = """
[tsa]
dir = {0}
serial = {0}/serial
crypto_device = builtin
signer_cert = {0}/tsa.pem
signer_key = {0}/tsa.key
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha1, sha256, sha512
accuracy = secs:1
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
def test_a_report_is_stamped_and_anybody_checks_it(sealed, authority, database, run, tmp_path):
    kit, _, environ = sealed
    place, url = authority
    reports = tmp_path / "reports"
    kit.audit(sync=False).report(reports, formats="csv")
    verify = ("log", "verify", str(reports), "--tsa", str(place / "root.pem"))
    assert "time        FAILED     There is no time stamp" in run(*verify, ends=3).out
    told = run("log", "timestamp", "--url", url, "--beside", str(reports), within=environ).out
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
    run("log", "timestamp", "--url", url, "--beside", str(tmp_path / "later"), within=environ)
    (reports / "checkpoint.tsr").write_bytes((tmp_path / "later" / "checkpoint.tsr").read_bytes())
    assert "time        FAILED     The time stamp is not one of this checkpoint" in run(*verify, ends=3).out
    (reports / "checkpoint.tsr").write_bytes(token[:100])
    assert "time        not known  The time stamp cannot be read here. Try: openssl ts" in run(*verify).out
    with pytest.raises(UnreadableFile, match="no certificates"):
        stamped_at(token, note, reports / "checkpoint")


@needs_openssl
def test_what_the_authority_refuses_or_mistakes_is_not_kept(sealed, authority, database):
    kit, _, _ = sealed
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
