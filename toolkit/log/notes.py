"""Checkpoints of the log as signed notes, and proofs that an entry is in it: the formats of C2SP.

A note is a text, an empty line, and a line for each signature. A checkpoint is a note of three lines: the origin,
the number of entries, and the root. A ``.tlog-proof`` file has the index of an entry, the hashes from it to the
root, and the checkpoint. Sources: C2SP ``signed-note``, ``tlog-checkpoint`` and ``tlog-proof``.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Final, Self

from toolkit.errors import SettingsError, UnreadableFile
from toolkit.log.merkle import HASH_BYTES, LONGEST_PROOF

if TYPE_CHECKING:  # of an extra, which reading a checkpoint does without
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

ED25519: Final = b"\x01"
"""The type of a key and of its signatures."""

COSIGNATURE: Final = b"\x04"
"""The type of the key of a witness, whose signatures have a time."""

PROOF_HEAD: Final = "c2sp.org/tlog-proof@v1"

_DIGITS: Final = "(?:0|[1-9][0-9]{0,17})"
_SIGNATURE: Final = re.compile("— ([^ +\n]+) ([A-Za-z0-9+/=]+)")
"""The line of a signature in a note: the name of a key, and in base64 its id and the signature."""

_TEXT: Final = re.compile(rf"([^\n]+)\n({_DIGITS})\n([A-Za-z0-9+/]{{43}}=)\n")
_INDEX: Final = re.compile(rf"index ({_DIGITS})")


@dataclass(frozen=True, slots=True)
class VerifierKey:
    """The public key of a log or a witness, under the name that notes are signed with."""

    name: str
    public: bytes
    kind: bytes = ED25519

    @classmethod
    def parse(cls, text: str, kind: bytes = ED25519) -> Self:
        """Read ``NAME+KEY ID+KEY``, as ``log.vkey`` has it, of a key of this kind.

        Raises:
            UnreadableFile: it is no such key.
        """
        name, _, rest = text.strip().partition("+")
        digits, _, encoded = rest.partition("+")
        raw = _decoded(encoded)
        if not re.fullmatch(r"\S+", name) or raw is None or raw[:1] != kind or len(raw) != 1 + HASH_BYTES:
            raise UnreadableFile("This is no key of a log: {}", repr(text[:80]))
        found = cls(name, raw[1:], kind)
        if digits != found.key_id.hex():
            raise UnreadableFile("The id in this key of a log is not its own: {}", repr(text[:80]))
        return found

    @property
    def key_id(self) -> bytes:
        """The four bytes by which a signature tells whose it is."""
        return sha256(self.name.encode() + b"\n" + self.kind + self.public).digest()[:4]

    def __str__(self) -> str:
        return f"{self.name}+{self.key_id.hex()}+{b64encode(self.kind + self.public).decode()}"

    def pem(self) -> bytes:
        """Return the key as other programs read it."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        public = Ed25519PublicKey.from_public_bytes(self.public)
        return public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    def opens(self, note: str) -> str | None:
        """Return the text of a note that this key signed; ``None`` where it did not, or a signature is false."""
        text, _, lines = note.rpartition("\n\n")
        text, signed = f"{text}\n", False
        for line in lines.split("\n")[:-1]:
            found = _SIGNATURE.fullmatch(line)
            raw = _decoded(found[2]) if found else None
            if found is None or raw is None:
                return None
            if found[1] == self.name and raw[:4] == self.key_id:
                if not self.verifies(raw[4:], text):
                    return None
                signed = True
        return text if signed and lines.endswith("\n") else None

    def verifies(self, signature: bytes, text: str) -> bool:
        """Tell whether this key made the signature of a text."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        try:
            Ed25519PublicKey.from_public_bytes(self.public).verify(signature, text.encode())
        except InvalidSignature:
            return False
        return True


@dataclass(frozen=True, slots=True)
class LogSigner:
    """The key that signs the checkpoints of a log, under the name of the log."""

    name: str
    private: Ed25519PrivateKey

    @classmethod
    def read(cls, name: str, pem: bytes, place: object) -> Self:
        """Read a private key in PEM (PKCS#8), as ``openssl genpkey -algorithm ed25519`` writes it.

        Raises:
            SettingsError: it is none.
        """
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        try:
            key = load_pem_private_key(pem, None)
        except (ValueError, TypeError):
            key = None
        if not isinstance(key, Ed25519PrivateKey):
            raise SettingsError("{} must hold an Ed25519 key: openssl genpkey -algorithm ed25519 -out FILE", place)
        return cls(name, key)

    @property
    def verifier(self) -> VerifierKey:
        """The key by which others verify what this one signs."""
        return VerifierKey(self.name, self.private.public_key().public_bytes_raw())

    def sign(self, text: str) -> str:
        """Return the note of a text that ends in a new line."""
        return f"{text}\n{self.signature(text)}"

    def signature(self, text: str) -> str:
        """Return the line of the signature of a text, for its note."""
        signed = self.verifier.key_id + self.private.sign(text.encode())
        return f"— {self.name} {b64encode(signed).decode()}\n"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The state of a log: its name, the number of its entries, and the root over them."""

    origin: str
    size: int
    root: bytes

    def __str__(self) -> str:
        return f"{self.origin}\n{self.size}\n{b64encode(self.root).decode()}\n"

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Read the text of a note; ``None`` where it is no checkpoint."""
        found = _TEXT.fullmatch(text)
        root = _decoded(found[3]) if found else None
        return cls(found[1], int(found[2]), root) if found and root is not None else None


@dataclass(frozen=True, slots=True)
class SignedState:
    """A checkpoint of the log: the number of its entries, the signed note, and the key that signed it last."""

    size: int
    note: str
    vkey: str
    issued_at: datetime

    @property
    def root(self) -> str:
        """The root that the note tells, in hexadecimal digits."""
        return b64decode(self.note.split("\n", 3)[2]).hex()

    def is_of(self, key: VerifierKey, root: bytes) -> bool:
        """Tell whether a key signed this root at this size."""
        return key.opens(self.note) == str(Checkpoint(key.name, self.size, root))

    def files(self) -> dict[str, bytes]:
        """Return the files that hold it: the note, and the public key in two forms."""
        pem = VerifierKey.parse(self.vkey).pem()
        return {"checkpoint": self.note.encode(), "log.vkey": f"{self.vkey}\n".encode(), "log.pem": pem}


@dataclass(frozen=True, slots=True)
class EntryProof:
    """The place of an entry in the log, the hashes from it to the root, and the note of the checkpoint."""

    index: int
    path: Sequence[bytes]
    note: str

    def __str__(self) -> str:
        return f"{PROOF_HEAD}\nindex {self.index}\n{lines_of(self.path)}\n{self.note}"

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Read a ``.tlog-proof`` file; ``None`` where it is none. What it says in ``extra`` is not read."""
        head, _, note = text.partition("\n\n")
        first, _, rest = head.partition("\n")
        lines = rest.split("\n")
        if lines[0].startswith("extra "):
            lines = lines[1:]
        found = _INDEX.fullmatch(lines[0]) if lines else None
        path = hashes_of(lines[1:])
        return cls(int(found[1]), path, note) if first == PROOF_HEAD and found and path is not None else None


def hashes_of(lines: Sequence[str]) -> list[bytes] | None:
    """Return the hashes that stand one a line; ``None`` where a line is none, or there are too many."""
    if len(lines) > LONGEST_PROOF:
        return None
    found = [raw for line in lines if (raw := _decoded(line)) is not None and len(raw) == HASH_BYTES]
    return found if len(found) == len(lines) else None


def lines_of(hashes: Iterable[bytes]) -> str:
    """Return hashes, one a line."""
    return "".join(f"{b64encode(each).decode()}\n" for each in hashes)


def text_of(note: str) -> str:
    """Return the text of a note, whoever signed it."""
    return note.rpartition("\n\n")[0] + "\n"


def cosigned_at(key: VerifierKey, text: str, line: str) -> datetime | None:
    """Return when a witness signed the text of a checkpoint; ``None`` where the line is no such signature."""
    found = _SIGNATURE.fullmatch(line.strip("\n"))
    try:
        raw = b64decode(found[2], validate=True) if found else b""
        seconds = int.from_bytes(raw[4:12], "big")
        moment = datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    if found is None or found[1] != key.name or raw[:4] != key.key_id or len(raw) != 4 + 8 + 64:
        return None
    return moment if key.verifies(raw[12:], f"cosignature/v1\ntime {seconds}\n{text}") else None


def _decoded(text: str) -> bytes | None:
    try:
        return b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None


def new_key() -> bytes:
    """Return a new private key in PEM."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
