"""Make S3 clients, and sign upload forms with temporary credentials (Signature Version 4, browser-based uploads).

A form carries the credentials of a session with a token. The ambient ones serve where they carry one;
else the session is a role's (AssumeRole), else the user's own (GetSessionToken).
"""

import base64
import json
import logging
import os
from bisect import bisect_left
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Any, Final

import boto3
from botocore.auth import S3SigV4PostAuth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials, ReadOnlyCredentials, RefreshableCredentials
from botocore.exceptions import NoCredentialsError
from botocore.session import Session as AwsSession

from toolkit.bucket.errors import Server, shown_address
from toolkit.contract.deadlines import Clock
from toolkit.errors import BucketError, BucketUnavailable
from toolkit.settings import AwsSettings

_log = logging.getLogger(__name__)

DEFAULT_REGION: Final = "us-east-1"
ACL: Final = "private"  # the constant that the contract's form posts beside the fields
CONNECT_TIMEOUT: Final = 3  # seconds until a silent address is tried again, or counts as unavailable
READ_TIMEOUT: Final = 20
ATTEMPTS: Final = 3
POOL: Final = 64  # connections kept for threads that read at the same time
ROLE_SECONDS: Final = 3600  # the life of a role's session, which every role allows
USER_SECONDS: Final = 12 * 3600  # life of a user's own session: Amazon's default
RENEWAL_PAUSE: Final = timedelta(minutes=5)  # a session is used as long, though a form would outlive it
UNKNOWN_END: Final = timedelta(minutes=15)  # the life of a form that is signed by a session whose end is not known

_NO_FILES: Final = dict.fromkeys(("config_file", "credentials_file"), (None, None, os.devnull, None)) | {
    "profile": (None, None, None, None)
}
"""Variables of a session of botocore that keep the user's own profiles from the embedded server."""


@dataclass(frozen=True, slots=True)
class Session:
    """Credentials that carry a token, and when they end (``None``: not known)."""

    credentials: ReadOnlyCredentials = field(repr=False)
    ends_at: datetime | None


class Access:
    """The ambient credentials, and the endpoints of the S3 server and its token service."""

    def __init__(self, aws: AwsSettings) -> None:
        self._session = boto3.Session(
            aws_access_key_id=aws.access_key_id,
            aws_secret_access_key=aws.secret_access_key,
            aws_session_token=aws.session_token,
            region_name=aws.region,
            profile_name=aws.profile,
            botocore_session=AwsSession(_NO_FILES) if aws.embedded else None,
        )
        self._endpoints = {"s3": aws.s3_endpoint, "sts": aws.sts_endpoint}
        self.aws = aws

    def client(self, service: str) -> Any:
        """Return a client with short time-outs and boto3's standard retries."""
        config = Config(
            signature_version="s3v4" if service == "s3" else None,
            # Amazon names buckets in the host; other servers seldom have the host names for it.
            s3={"addressing_style": "path" if self._endpoints["s3"] else "virtual"},
            connect_timeout=CONNECT_TIMEOUT,
            read_timeout=READ_TIMEOUT,
            retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
            max_pool_connections=POOL,
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
            proxies={} if self.aws.embedded else None,
        )
        region = self._session.region_name or DEFAULT_REGION
        try:
            return self._session.client(
                service, endpoint_url=self._endpoints[service], region_name=region, config=config
            )
        except ValueError:
            raise BucketError(
                "AWS_ENDPOINT_URL or AWS_REGION is wrong; they look like https://s3.example.com and sa-east-1."
            ) from None

    def ambient(self) -> Session:
        """Return the credentials of the environment, a profile or the machine, fresh where they renew themselves.

        Those of a user have no token.
        """
        credentials = self._session.get_credentials()
        if credentials is None:
            raise NoCredentialsError
        frozen = credentials.get_frozen_credentials()
        return Session(frozen, renewed_until(credentials) or self.aws.session_ends)


def renewed_until(credentials: Credentials) -> datetime | None:
    """Return the end of credentials that renew themselves, to the second; ``None`` for others.

    botocore answers only whether they last for so many seconds.
    """
    if not isinstance(credentials, RefreshableCredentials):
        return None
    now = datetime.now(UTC)
    lasts = bisect_left(range(USER_SECONDS), True, key=lambda seconds: credentials.refresh_needed(seconds))
    return now + timedelta(seconds=max(lasts - 1, 0))


class SigningSessions:
    """Temporary sessions to sign upload forms with; safe between threads.

    The ambient one where there is one, which somebody else renews. Else those that the token service issues,
    each kept for all forms and renewed before it would cut them short.
    """

    def __init__(self, access: Access, server: Server, clock: Clock) -> None:
        self._access = access
        self._server = server
        self._clock = clock
        self._lock = Lock()
        self._issued: Session | None = None
        self._warned = False
        self._renew_from = datetime.min.replace(tzinfo=UTC)

    def session(self, until: datetime) -> Session:
        """Return a session that is good until ``until``, or for as long as there is one.

        Raises:
            BucketUnavailable: the token service does not answer.
            BucketError: there are no credentials, they ended, or the token service said no.
        """
        with self._server.translated():
            ambient = self._access.ambient()
        if ambient.credentials.token is None:
            return self._issued_session(until)
        if ambient.ends_at is not None and ambient.ends_at <= self._clock():
            raise BucketError("The AWS session of the environment has ended; sign in again.")
        if ambient.ends_at is not None:
            return ambient
        if not self._warned:
            self._warned = True
            _log.warning(
                "The AWS session of the environment ends at an unknown time, so upload forms live at most %d "
                "minutes. Set AWS_CREDENTIAL_EXPIRATION for longer ones.",
                UNKNOWN_END.seconds // 60,
            )
        return replace(ambient, ends_at=self._clock() + UNKNOWN_END)

    def _issued_session(self, until: datetime) -> Session:
        issued, now = self._issued, self._clock()
        if issued is not None and (issued.ends_at or now) > now and self._lock.locked():
            return issued  # while it is renewed
        with self._lock:
            now = self._clock()
            ends_at = now if self._issued is None or self._issued.ends_at is None else self._issued.ends_at
            if ends_at <= now or (ends_at < until and self._renew_from <= now):
                try:
                    self._issued = self._issue()
                except BucketUnavailable:
                    if ends_at <= now:  # until then the session that there is signs forms, which it cuts short
                        raise
                self._renew_from = now + RENEWAL_PAUSE
            assert self._issued is not None
            return self._issued

    def _issue(self) -> Session:
        sts = self._access.client("sts")
        server = Server(f"token service at {shown_address(sts.meta.endpoint_url)}", self._access.aws.embedded)
        with server.translated():
            if (role := self._access.aws.role_arn) is not None:
                answer = sts.assume_role(
                    RoleArn=role, RoleSessionName="evidence-toolkit", DurationSeconds=ROLE_SECONDS
                )
            else:
                answer = sts.get_session_token(DurationSeconds=USER_SECONDS)
            issued = answer["Credentials"]
        credentials = ReadOnlyCredentials(issued["AccessKeyId"], issued["SecretAccessKey"], issued["SessionToken"])
        return Session(credentials, issued["Expiration"])


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
    must have 1 to ``max_bytes`` bytes. ``expires_at`` counts to the whole second. boto3's
    ``generate_presigned_post`` takes five times the time, and escapes characters beyond the Basic Multilingual
    Plane in a way that Ceph's gateway does not read back; botocore still computes the signature.
    """
    if "${" in key:
        raise ValueError("S3 replaces ${filename} in a form: no key may hold ${")
    auth = S3SigV4PostAuth(credentials, "s3", region)
    request = AWSRequest()
    request.context["timestamp"] = f"{signed_at.astimezone(UTC):%Y%m%dT%H%M%SZ}"
    fields = {
        "bucket": bucket,
        "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
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
