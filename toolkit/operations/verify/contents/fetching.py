"""Fetch one version of an object and look at all of its bytes."""

import hashlib
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO

from toolkit.operations.verify.contents.inspection import Inspected
from toolkit.storage.bucket import Bucket


@dataclass(frozen=True, slots=True)
class Fetched:
    """The inspected contents of an object, their SHA-256, and the media type that the bucket declares."""

    found: Inspected
    sha256: str
    stored_type: str | None


def fetch_and_inspect(bucket: Bucket, key: str, etag: str, inspect: Callable[[IO[bytes]], Inspected]) -> Fetched:
    """Return what the object is; a file without a name holds it meanwhile.

    Raises:
        BucketError: it cannot be read, or was overwritten since it had this ``etag``.
        VerificationFailed: files cannot be looked at on this machine.
    """
    digest = hashlib.sha256()
    with tempfile.TemporaryFile() as file:  # so that a kill leaves nothing
        with bucket.download(key, etag=etag) as (chunks, stored_type):
            for chunk in chunks:
                file.write(chunk)
                digest.update(chunk)
        file.flush()
        return Fetched(inspect(file), digest.hexdigest(), stored_type)
