"""Check an upload form as S3 does, written from its documentation and not from our code.

Sources: "Browser-Based Uploads Using POST (AWS Signature Version 4)" and "POST Policy" in the S3 API
reference. A form is a list of (name, value) in the order in which it is posted; the file comes last.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

_UNCHECKED = {"x-amz-signature", "policy", "file"}
"""Fields that need no condition, beside those that start with x-ignore-."""


@dataclass(frozen=True)
class Signatory:
    """An access key, as the server knows it."""

    secret: str
    token: str | None = None


class Refused(Exception):
    """The server would not take the form."""


def check_form(
    form: Sequence[tuple[str, str]],
    size: int,
    *,
    bucket: str,
    region: str,
    signatories: Mapping[str, Signatory],
    now: datetime,
) -> str:
    """The key under which ``bucket`` would keep a file of ``size`` bytes that is posted with ``form``.

    Raises:
        Refused: with the reason.
    """
    fields: dict[str, str] = {}
    for name, value in form:
        if name.lower() in fields:
            raise Refused(f"{name} twice")
        fields[name.lower()] = value
    for name in ("key", "policy", "x-amz-algorithm", "x-amz-credential", "x-amz-date", "x-amz-signature"):
        if not fields.get(name):
            raise Refused(f"{name} is missing")
    _check_signature(fields, region, signatories, now)
    _check_policy(fields, size, bucket, now)
    return fields["key"]


def _check_signature(
    fields: Mapping[str, str], region: str, signatories: Mapping[str, Signatory], now: datetime
) -> None:
    if fields["x-amz-algorithm"] != "AWS4-HMAC-SHA256":
        raise Refused("algorithm")
    access_key, *scope = fields["x-amz-credential"].split("/")
    signed_at = _compact(fields["x-amz-date"])
    if scope != [f"{signed_at:%Y%m%d}", region, "s3", "aws4_request"]:
        raise Refused("credential scope")
    if abs((now - signed_at).days) > 7:
        raise Refused("signed long ago")
    signatory = signatories.get(access_key)
    if signatory is None:
        raise Refused("access key")
    if fields.get("x-amz-security-token") != signatory.token:
        raise Refused("session token")
    key = f"AWS4{signatory.secret}".encode()
    for step in [*scope, fields["policy"]]:
        key = hmac.digest(key, step.encode(), hashlib.sha256)
    if not hmac.compare_digest(key.hex().encode(), fields["x-amz-signature"].encode()):
        raise Refused("signature")


def _compact(text: str) -> datetime:
    try:
        return datetime.strptime(text, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except ValueError:
        raise Refused("date") from None


def _check_policy(fields: Mapping[str, str], size: int, bucket: str, now: datetime) -> None:
    policy = json.loads(base64.b64decode(fields["policy"], validate=True))
    if datetime.fromisoformat(policy["expiration"]) <= now:
        raise Refused("expired")
    posted = {**fields, "bucket": bucket}
    if fields.get("bucket", bucket) != bucket:
        raise Refused("bucket")
    named = set()
    for condition in policy["conditions"]:
        named.add(_check_condition(condition, posted, size))
    extra = {name for name in fields if not name.startswith("x-ignore-")} - _UNCHECKED - named
    if extra:
        raise Refused(f"Extra input fields: {', '.join(sorted(extra))}")


def _check_condition(condition: Any, posted: Mapping[str, str], size: int) -> str:
    """Check one condition and return the name of its field."""
    if isinstance(condition, dict):
        ((name, wanted),) = condition.items()
        operator, name = "eq", f"${name}"
    else:
        operator, name, wanted = condition
    if operator == "content-length-range":
        if not int(name) <= size <= int(wanted):
            raise Refused("size")
        return ""
    name = name.removeprefix("$").lower()
    value = posted.get(name)
    fits = value is not None and (value.startswith(wanted) if operator == "starts-with" else value == wanted)
    if operator not in {"eq", "starts-with"} or not fits:
        raise Refused(f"condition on {name}")
    return name
