"""The second S3 server, which ``.ci/gateway`` starts."""

import os

from toolkit.embedded import BucketAccess


def gateway_access() -> BucketAccess | None:
    """Return the access to the object gateway that runs, ``None`` where none does."""
    endpoint, key, secret = (
        os.environ.get(f"TEST_GATEWAY_{name}") for name in ("ENDPOINT", "ACCESS_KEY", "SECRET_KEY")
    )
    return BucketAccess(endpoint, "us-east-1", key, secret, None, "") if endpoint and key and secret else None
