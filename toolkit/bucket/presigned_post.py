"""The signed policy of an upload form (AWS Signature Version 4, browser-based uploads).

boto3's ``generate_presigned_post`` does the same in five times the time, and escapes characters beyond the
Basic Multilingual Plane in a way that Ceph's gateway does not read back; botocore still computes the signature.
"""

import base64
import json
from datetime import UTC, datetime
from typing import Final

from botocore.auth import S3SigV4PostAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import ReadOnlyCredentials

ALGORITHM: Final = "AWS4-HMAC-SHA256"

ACL: Final = "private"
"""The constant that the contract's form posts beside the fields."""


def signed_fields(
    credentials: ReadOnlyCredentials,
    region: str,
    *,
    bucket: str,
    key: str,
    max_bytes: int,
    signed_at: datetime,
    expires_at: datetime,
) -> dict[str, str]:
    """Return the form fields under the contract's names and in its order (contract, "Keys of ``fields``").

    Every field that the contract's caller posts, ``acl`` among them, has its condition, as S3 demands; ``file``
    must have 1 to ``max_bytes`` bytes. ``expires_at`` counts to the whole second.
    """
    if "${" in key:
        raise ValueError("S3 replaces ${filename} in a form: no key may hold ${")
    auth = S3SigV4PostAuth(credentials, "s3", region)
    request = AWSRequest()
    request.context["timestamp"] = f"{signed_at.astimezone(UTC):%Y%m%dT%H%M%SZ}"
    fields = {
        "bucket": bucket,
        "X-Amz-Algorithm": ALGORITHM,
        "X-Amz-Credential": auth.scope(request),
        "X-Amz-Date": request.context["timestamp"],
        "X-Amz-Security-Token": credentials.token,
        "key": key,
    }
    policy = {
        "expiration": f"{expires_at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "conditions": [
            *({name.lower(): value} for name, value in fields.items()),
            {"acl": ACL},
            ["content-length-range", 1, max_bytes],
        ],
    }
    encoded = base64.b64encode(json.dumps(policy, ensure_ascii=False).encode()).decode("ascii")
    return fields | {"Policy": encoded, "X-Amz-Signature": auth.signature(encoded, request)}
