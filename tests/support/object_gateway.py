"""The second S3 server, which ``.ci/gateway`` starts."""

import os

from toolkit.settings import AwsSettings


def gateway_access() -> AwsSettings | None:
    """Return the access to the object gateway that runs, ``None`` where none does."""
    endpoint, key, secret = (
        os.environ.get(f"TEST_GATEWAY_{name}") for name in ("ENDPOINT", "ACCESS_KEY", "SECRET_KEY")
    )
    return (
        AwsSettings(key, secret, region="us-east-1", s3_endpoint=endpoint) if endpoint and key and secret else None
    )
