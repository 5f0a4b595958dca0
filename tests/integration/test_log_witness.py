"""Witnesses sign the states of the custody log: by file, over HTTP, and what anybody checks of it afterwards."""

from base64 import b64decode, b64encode
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.support.observations import FIRST, Story, day
from tests.support.scripted_server import Answer, scripted
from toolkit.errors import InvalidInput, UnreadableFile
from toolkit.kit.connection import Kit
from toolkit.log.merkle import is_consistent
from toolkit.log.notes import COSIGNATURE, Checkpoint, VerifierKey, text_of
from toolkit.log.others import ask_witness, keep_cosignature, request_for
from toolkit.settings import Settings

VECTORS = Path(__file__).parents[1] / "data" / "log"
PRIVATE = Ed25519PrivateKey.from_private_bytes(b"\x07" * 32)
AUDITOR = VerifierKey("auditor.example.com/witness", PRIVATE.public_key().public_bytes_raw(), COSIGNATURE)
NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)


def cosigned(note, moment=NOW, key=AUDITOR):
    """The line with which the auditor signs a checkpoint."""
    seconds = int(moment.timestamp())
    signature = PRIVATE.sign(f"cosignature/v1\ntime {seconds}\n{text_of(note)}".encode())
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
    with Kit(Settings.from_environment(environ), environ=environ, clock=clock) as kit:
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


def test_a_witness_is_asked_over_http_and_tells_the_size_that_it_knows(sealed):
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
    with scripted(Answer(422, b"no")) as server, pytest.raises(InvalidInput, match="refused: status 422"):
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
    second = VerifierKey("second.example.com/witness", AUDITOR.public, COSIGNATURE)
    cosigs.write_text(cosigned(checkpoint) + cosigned(checkpoint.replace("\n", "x\n", 1), key=second), "utf-8")
    assert "second.example.com/witness did not sign" in run(*verify, "--witness", str(second), ends=3).out
    kit.audit(sync=False).report(tmp_path / "reports", formats="csv")
    assert not cosigs.exists()  # it went to history with the report that it is about
    story.sale("S-2", partner="Norte")
    kit.seal_log()
    cosigs.write_text(cosigned(state_of(kit)), "utf-8")
    assert "did not sign this state" in run(*verify, ends=3).out


@pytest.mark.parametrize("name", ["nothing", "folder", "binary"])
def test_a_file_that_cannot_be_read_is_named_in_the_language_of_the_reader(sealed, run, tmp_path, name):
    _, _, environ = sealed
    within = environ | {"TOOLKIT_LANGUAGE": "pt-BR"}
    (tmp_path / "folder").mkdir()
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    place = str(tmp_path / name)
    said = run("log", "consistency", place, place, ends=1, within=within).err
    assert f"{place} não é um checkpoint assinado pela chave deste registro." in said
    said = run("log", "cosign", place, "--witness", str(AUDITOR), ends=1, within=within).err
    assert f"{place} não pode ser lido como a resposta de uma testemunha." in said
    if name == "binary":
        said = run("log", "prove", "1", "--out", place, ends=1, within=within).err
        assert f"{place} não pode ser escrito: O arquivo já existe" in said
