"""Fetch one version of an object and look at all of its bytes."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable
from typing import IO

from toolkit.operations.verify.contents.inspection import Inspected
from toolkit.storage.bucket import Bucket


def fetch_and_inspect(
    bucket: Bucket, key: str, etag: str, inspect: Callable[[IO[bytes]], Inspected]
) -> tuple[Inspected, str]:
    """Return what the object is and the SHA-256 of its bytes; a file without a name holds it meanwhile.

    Raises:
        BucketError: it cannot be read, or was overwritten since it had this ``etag``.
        VerificationFailed: files cannot be looked at on this machine.
    """
    digest = hashlib.sha256()
    with tempfile.TemporaryFile() as file:  # so that a kill leaves nothing
        for chunk in bucket.chunks(key, etag=etag):
            file.write(chunk)
            digest.update(chunk)
        file.flush()
        return inspect(file), digest.hexdigest()
