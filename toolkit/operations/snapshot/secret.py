"""Keep the secret of the pseudonyms: exports that belong together need the same one."""

import hmac
import secrets
from pathlib import Path
from typing import Final

from filelock import FileLock

from toolkit.errors import InvalidInput
from toolkit.operations.atomic_file import atomic_file
from toolkit.operations.snapshot.manifest import Manifest

_KEY_BYTES: Final = 32


def secret_of(home: Path) -> bytes:
    """Return the secret that makes pseudonyms, created at its first use; who has it can undo them."""
    place = home / "snapshot.key"
    with FileLock(home / "snapshots" / "key.lock"):
        if not place.exists():
            with atomic_file(place) as draft:
                draft.file.write(secrets.token_hex(_KEY_BYTES))
                draft.finish()
    secret = known_secret(home)
    assert secret is not None
    return secret


def known_secret(home: Path) -> bytes | None:
    """Return that secret, ``None`` where nothing was exported from ``home``."""
    place = home / "snapshot.key"
    return bytes.fromhex(place.read_text(encoding="ascii").strip()) if place.exists() else None


def check_key(made: Manifest, secret: bytes, target: str) -> None:
    """Make sure that the pseudonyms of another export fit.

    Raises:
        InvalidInput: they do not.
    """
    if made.key not in {None, sign_of(secret)}:
        raise InvalidInput(
            f"The newest export in {target} has pseudonyms of another key than snapshot.key in "
            "TOOLKIT_HOME, so files would not meet their records. Copy the key from where that export was made, "
            "or export the whole history: toolkit snapshot export TARGET --full"
        )


def sign_of(secret: bytes) -> str:
    """Return what tells one secret from another, and nothing of it."""
    return hmac.digest(secret, b"snapshot.key", "sha256").hex()[:16]
