"""Checkpoints of the log as signed notes, and proofs that an entry is in it: the formats of C2SP.

A note is a text, an empty line, and a line for each signature. A checkpoint is a note of three lines: the origin,
the number of entries, and the root. A ``.tlog-proof`` file has the index of an entry, the hashes from it to the
root, and the checkpoint. Sources: C2SP ``signed-note``, ``tlog-checkpoint`` and ``tlog-proof``.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Final, Self

from toolkit.errors import SettingsError, UnreadableFile
from toolkit.log.merkle import HASH_BYTES, LONGEST_PROOF

if TYPE_CHECKING:  # of an extra, which reading a checkpoint does without
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

ED25519: Final = b"\x01"  # the type of a key and of its signatures
COSIGNATURE: Final = b"\x04"  # the type of the key of a witness, whose signatures have a time

_DIGITS: Final = "(0|[1-9][0-9]{0,17})"
_HASH: Final = "[A-Za-z0-9+/]{43}="
_BASE64: Final = "((?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==|[A-Za-z0-9+/]=))?)"
_KEY: Final = re.compile(rf"([^\s+]+)\+([0-9a-f]{{8}})\+{_BASE64}")
_SIGNATURE: Final = re.compile(rf"(?m:^)— ([^ +\n]+) {_BASE64}\n")
_NOTE: Final = re.compile(rf"(.*\n)\n((?:{_SIGNATURE.pattern})+)", re.DOTALL)
_CHECKPOINT: Final = re.compile(rf"([^\n]+)\n{_DIGITS}\n({_HASH})\n")
_PROOF: Final = re.compile(
    rf"c2sp\.org/tlog-proof@v1\n(?:extra [^\n]*\n)?index {_DIGITS}\n((?:{_HASH}\n){{0,{LONGEST_PROOF}}})\n(.*)",
    re.DOTALL,
)


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
        found = _KEY.fullmatch(text.strip())
        raw = b64decode(found[3]) if found else b""
        if found is None or raw[:1] != kind or len(raw) != 1 + HASH_BYTES:
            raise UnreadableFile("This is no key of a log: {}", repr(text[:80]))
        key = cls(found[1], raw[1:], kind)
        if found[2] != key.key_id.hex():
            raise UnreadableFile("The id in this key of a log is not its own: {}", repr(text[:80]))
        return key

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
        found = _NOTE.fullmatch(note)
        signatures = [*self._signatures(found[2])] if found else []
        is_signed = found and signatures and all(self._verifies(each, found[1]) for each in signatures)
        return found[1] if found and is_signed else None

    def cosigned_at(self, text: str, lines: str) -> datetime | None:
        """Return when this witness signed the text of a checkpoint; ``None`` where no line is that signature."""
        for raw in self._signatures(lines):
            seconds = int.from_bytes(raw[:8], "big")
            if seconds < 1 << 37 and self._verifies(raw[8:], f"cosignature/v1\ntime {seconds}\n{text}"):
                return datetime.fromtimestamp(seconds, UTC)
        return None

    def _signatures(self, lines: str) -> Iterator[bytes]:
        """Yield what this key says that it signed; lines of other keys are skipped."""
        for name, encoded in _SIGNATURE.findall(lines):
            raw = b64decode(encoded)
            if name == self.name and raw[:4] == self.key_id:
                yield raw[4:]

    def _verifies(self, signature: bytes, text: str) -> bool:
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
        return f"{self.origin}\n{self.size}\n{lines_of([self.root])}"

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Read the text of a note; ``None`` where it is no checkpoint."""
        found = _CHECKPOINT.fullmatch(text)
        return cls(found[1], int(found[2]), b64decode(found[3])) if found else None

    def signed_by(self, signers: Sequence[LogSigner]) -> str:
        """Return the note that these keys sign."""
        return f"{self}\n" + "".join(each.signature(str(self)) for each in signers)


@dataclass(frozen=True, slots=True)
class SignedState:
    """A checkpoint of the log: the number of its entries, the signed note, and the key that signed it last."""

    size: int
    note: str
    vkey: str
    issued_at: datetime

    @property
    def root(self) -> str:
        """The root that the note tells, in hexadecimal digits; empty where the note is no checkpoint."""
        found = Checkpoint.parse(text_of(self.note))
        return "" if found is None else found.root.hex()

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
        return f"c2sp.org/tlog-proof@v1\nindex {self.index}\n{lines_of(self.path)}\n{self.note}"

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Read a ``.tlog-proof`` file; ``None`` where it is none. What it says in ``extra`` is not read."""
        found = _PROOF.fullmatch(text)
        return cls(int(found[1]), [*map(b64decode, found[2].split())], found[3]) if found else None


def lines_of(hashes: Iterable[bytes]) -> str:
    """Return hashes, one a line."""
    return "".join(f"{b64encode(each).decode()}\n" for each in hashes)


def text_of(note: str) -> str:
    """Return the text of a note, whoever signed it."""
    return note.rpartition("\n\n")[0] + "\n"


def new_key() -> bytes:
    """Return a new private key in PEM."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
