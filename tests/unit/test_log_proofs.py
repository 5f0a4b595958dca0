"""The tree, the notes and the proofs of the log, by what others computed and signed; older exports."""

import hmac
import json
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from shutil import copy

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st

from toolkit.contract.events import Event, LogKeys, commitment
from toolkit.log.chain import verify_log
from toolkit.log.merkle import (
    append,
    consistency_proof,
    inclusion_proof,
    is_consistent,
    leaf_hash,
    root,
    root_of_inclusion,
)
from toolkit.log.notes import Checkpoint, EntryProof, LogSigner, VerifierKey, lines_of

VECTORS = Path(__file__).parents[1] / "data" / "log"
ENTRIES = (VECTORS / "entries.txt").read_bytes().splitlines()
KEY = VerifierKey.parse((VECTORS / "log.vkey").read_text())


class Tree:
    """A tree in memory."""

    def __init__(self, entries, step=300):
        self.tiles = {}
        for first in range(0, len(entries), step):
            leaves = map(leaf_hash, entries[first : first + step])
            self.tiles |= append(self.read, first, leaves)

    def read(self, level, number):
        return self.tiles[level, number]


def test_the_vectors_of_another_implementation():
    tree = Tree(ENTRIES)
    note = (VECTORS / "checkpoint").read_text()
    checkpoint = Checkpoint("evidence.example.com.br/custody", 7, root(tree.read, 7))
    signer = LogSigner(checkpoint.origin, Ed25519PrivateKey.from_private_bytes(b"\x01" * 32))

    assert root(tree.read, 0) == sha256().digest()
    assert str(signer.verifier) == str(KEY) == (VECTORS / "log.vkey").read_text().strip()
    assert signer.verifier.pem() == (VECTORS / "log.pem").read_bytes()
    assert checkpoint.signed_by([signer]) == note
    assert Checkpoint.parse(KEY.opens(note)) == checkpoint
    # Lines of witnesses, whose keys are unknown here, are skipped.
    assert KEY.opens(note + (VECTORS / "checkpoint.cosigs").read_text()) == str(checkpoint)

    written = (VECTORS / "entry.json.tlog-proof").read_text()
    proof = EntryProof.parse(written)
    assert str(proof) == written
    assert (proof.index, proof.path) == (5, inclusion_proof(tree.read, 5, 7))
    entry = (VECTORS / "entry.json").read_bytes()
    assert root_of_inclusion(leaf_hash(entry), proof.index, 7, proof.path) == checkpoint.root
    assert lines_of(consistency_proof(tree.read, 4, 7)) == (VECTORS / "consistency-4-7").read_text().strip() + "\n"


def test_a_note_that_others_signed_is_accepted_and_no_other_text_is():
    """The note of another implementation."""
    key = VerifierKey.parse("example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k")
    text = "This is an example message.\n"
    signature = "Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM="
    note = f"{text}\n— {key.name} {signature}\n"
    assert key.opens(note) == text
    assert key.opens(note.replace("is", "was", 1)) is None
    # A false signature by a known key refuses the note, whatever else signed it.
    assert key.opens(note + f"— {key.name} {signature[:20]}{'A' * 20}{signature[40:]}\n") is None
    assert KEY.opens(note) is None
    assert key.opens(note.rstrip("\n")) is None


@given(st.integers(1, 1500), st.data())
def test_a_proof_leads_to_the_root_and_that_of_another_entry_does_not(size, data):
    entries = [str(number).encode() for number in range(size)]
    tree = Tree(entries, data.draw(st.integers(1, 700)))
    whole = root(tree.read, size)
    index, old = data.draw(st.integers(0, size - 1)), data.draw(st.integers(0, size))

    path = inclusion_proof(tree.read, index, size)
    assert root_of_inclusion(leaf_hash(entries[index]), index, size, path) == whole
    assert root_of_inclusion(leaf_hash(b"other"), index, size, path) != whole
    if size > 1:
        assert root_of_inclusion(leaf_hash(entries[index]), (index + 1) % size, size, path) != whole
        assert root_of_inclusion(leaf_hash(entries[index]), index, size, path[:-1]) is None
    assert root_of_inclusion(leaf_hash(entries[index]), index, size, [*path, whole]) is None

    shown = consistency_proof(tree.read, old, size)
    assert is_consistent(old, root(tree.read, old), size, whole, shown)
    assert not is_consistent(old, leaf_hash(b"other"), size, whole, shown)
    if 0 < old < size:
        assert not is_consistent(old, root(tree.read, old), size, leaf_hash(b"other"), shown)
        assert not is_consistent(old, root(tree.read, old), size, whole, shown[:-1])


ROOT = "m3O3oNm48idNkxumfM0O49fgvfOCgu2bRBh5gH4Lq2Y"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "c2sp.org/tlog-proof@v1\nindex 05\n\n",
        "c2sp.org/tlog-proof@v1\nindex 1" + "0" * 20 + "\n\n",
        "c2sp.org/tlog-proof@v1\nindex 5\nAAAA\n\n",
        "c2sp.org/tlog-proof@v1\nindex 5\n" + "R99p0kxSxHcbdsIDTwCanj61njfeAztA/FFg/pCVeuA=\n" * 64 + "\n",
        f"c2sp.org/tlog-proof@v1\nindex 5\n{ROOT}\n\n",
        "c2sp.org/tlog-proof@v2\nindex 5\n\n",
        f"a\n7\n{ROOT}=\nmore\n",
        f"a\n07\n{ROOT}=\n",
    ],
)
def test_what_is_no_proof_and_no_checkpoint_is_none(text):
    assert EntryProof.parse(text) is Checkpoint.parse(text) is None


@pytest.fixture
def exported(tmp_path):
    """A log of seven events under three seals."""
    return Path(copy(VECTORS / "chain.jsonl", tmp_path))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda lines: lines[5]["event"]["detail"].update(number=99), "line 6: event 5 (TOLD) was changed"),
        (lambda lines: lines[0]["event"].update(at="2025"), "line 1: event 1 (TOLD) was changed"),
        (lambda lines: lines.pop(4), "line 5: event 5 (TOLD) was changed, put in or moved, or follows a gap"),
        (lambda lines: lines.insert(1, lines[2]), "line 2: event 3 (TOLD)"),
        (lambda lines: lines.pop(2), "line 3: seal 1 does not fit"),
        (lambda lines: lines.pop(3), "line 4: event 4"),
        (lambda lines: lines.pop(), "the end is missing: 1 events have no seal"),
        (lambda lines: lines[3]["seal"].update(sealedAt="2025"), "line 4: seal 1 does not fit"),
    ],
)
def test_the_first_line_that_does_not_fit_is_named(exported, change, reason):
    lines = [json.loads(line) for line in exported.read_text().splitlines()]
    change(lines)
    exported.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert verify_log(exported).misfit.startswith(reason)


@pytest.mark.parametrize(
    ("told", "forged"),
    [
        ('{"event": {', '{"event": {"kind": "WITHDRAWN", '),
        ('"digest"', '"note": "nobody hashed this", "digest"'),
        ('"digest"', '"seal": {}, "digest"'),
        ('{"event": {', "[" * 100_000),
    ],
)
def test_a_line_says_nothing_beside_what_is_hashed(exported, told, forged):
    lines = exported.read_text().splitlines(keepends=True)
    exported.write_text("".join([lines[0], lines[1].replace(told, forged), *lines[2:]]))
    assert verify_log(exported).misfit == "line 2: no event and no seal"


def test_what_stands_for_the_seal_before_the_first_is_no_seal_that_was_kept(exported):
    assert "forged as a whole, or cut off" in str(verify_log(exported, "0" * 64).misfit)


def test_fields_are_compared_and_opened_under_the_key_that_sealed_them():
    event = Event(7, "WITHDRAWN", datetime(2026, 11, 28, tzinfo=UTC), {"by": "Ana"}, b"s" * 16)
    keys, older = LogKeys(("new", "old")), LogKeys(("old",))
    of_field = hmac.digest(b"old", b"s" * 16 + b"by", "sha256")
    now = older.sealed(event)["detail"]["by"]
    assert now == commitment(of_field, "Ana")
    assert keys.agrees(event, "by", now)
    assert keys.agrees(event, "by", "Ana")
    assert keys.opens(event, "by", now) == of_field
    assert not keys.agrees(event, "by", commitment(of_field, "Rui"))


def test_fields_of_a_sale_are_sealed_under_its_random_key():
    """Recomputed by hand; that key is no other sale's, and opens while the key that wraps it is there."""
    keys, now = LogKeys(("old",)), datetime(2026, 11, 28, tzinfo=UTC)
    wrapped, other = keys.new_sale_key(), keys.new_sale_key()
    key = AESGCM(hmac.digest(b"old", b"wraps keys of sales", "sha256")).decrypt(wrapped[:12], wrapped[12:], None)
    event = Event(7, "WITHDRAWN", now, {"by": "Ana", "reason": "Ana"}, wrapped)
    told = keys.sealed(event)["detail"]
    of_field = hmac.digest(key, b"7\0by", "sha256")
    assert told["by"] == hmac.digest(of_field, b"Ana", "sha256").hex() != told["reason"]
    assert keys.sealed(event._replace(secret=other))["detail"]["by"] != told["by"]
    assert LogKeys(("new", "old")).sealed(event)["detail"] == told
    assert LogKeys(("new", "old")).opens(event, "by", told["by"]) == of_field
    assert [LogKeys(("new",)).can_unwrap(each) for each in (wrapped, None)] == [False, False]
    assert not keys.agrees(event._replace(secret=None), "by", told["by"])
