"""Translate errors of boto3 into those of the toolkit, at one boundary.

``BucketUnavailable`` where trying again later may help, ``BucketError`` where somebody has to act. The texts
are our own: those of servers may quote keys of objects and of accounts.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from botocore import exceptions as aws
from botocore.parsers import ResponseParserError

from toolkit.errors import BucketError, BucketUnavailable, ObjectArchived, ObjectDenied
from toolkit.message import Message

REFUSALS: Final = {
    **dict.fromkeys(
        ("InvalidAccessKeyId", "InvalidClientTokenId", "UnrecognizedClientException"),
        "The {} does not know the access key; check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE.",
    ),
    "SignatureDoesNotMatch": (
        "The {} refused the signature; check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE."
    ),
    **dict.fromkeys(
        ("ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired"),
        "The {} says that the AWS session has ended; sign in again.",
    ),
    "InvalidToken": "The {} refused the session token; check AWS_SESSION_TOKEN.",
    "RequestTimeTooSkewed": "The {} has another time than this machine; set the clock.",
    "NoSuchBucket": "The {} does not exist; check {}, or create it.",
    **dict.fromkeys(
        ("301", "PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException"),
        "The {} is in another region; set AWS_REGION.",
    ),
}
"""The meanings of error codes, for the name of the server and the setting that names it."""

_PERMISSIONS: Final = {
    "HeadBucket": "s3:ListBucket",
    "ListObjectsV2": "s3:ListBucket",
    "HeadObject": "s3:GetObject",
    "GetObject": "s3:GetObject",
    "AssumeRole": "sts:AssumeRole for EVIDENCE_ROLE_ARN",
    "GetSessionToken": "sts:GetSessionToken, or EVIDENCE_ROLE_ARN naming a role that may write to the bucket",
}

_OVERLOADED: Final = frozenset(
    {"SlowDown", "Throttling", "ThrottlingException", "TooManyRequests", "RequestLimitExceeded", "RequestTimeout"}
)

_NO_LOGIN: Final = (
    aws.NoCredentialsError,
    aws.PartialCredentialsError,
    aws.CredentialRetrievalError,
    aws.TokenRetrievalError,
)


def status_of(error: aws.ClientError) -> int:
    """Return the HTTP status of an answer that refused."""
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def shown_address(endpoint: str) -> str:
    """Return the address of a server without user and password, which a profile of AWS may hold."""
    return re.sub(r"(?<=://)[^/]*@", "", endpoint)


@dataclass(frozen=True, slots=True)
class Server:
    """A server as error texts name it, such as ``bucket evidence at https://s3.example.com``."""

    name: str
    embedded: bool = False
    named_by: str = "EVIDENCE_BUCKET"  # the setting, or the address of a person, that names the bucket

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Raise the toolkit's errors instead of boto3's.

        Raises:
            BucketUnavailable: unreachable, timed out, failed or overloaded, after boto3 had tried again.
            BucketError: the server said no, or there are no credentials.
        """
        try:
            yield
        except aws.ClientError as error:
            raise self._refusal(error) from None
        except aws.SSLError:
            reason = Message("cannot be reached over TLS; AWS_CA_BUNDLE may name its certificate")
            raise self._unavailable(reason) from None
        except (aws.ConnectionError, aws.HTTPClientError, aws.IncompleteReadError):
            raise self._unavailable(Message("does not answer")) from None
        except _NO_LOGIN:
            raise BucketError(
                "There are no AWS credentials for the {}; set AWS_ACCESS_KEY_ID and "
                "AWS_SECRET_ACCESS_KEY, or AWS_PROFILE.",
                self.name,
            ) from None
        except aws.ProfileNotFound:
            raise BucketError(
                "AWS_PROFILE names a profile that the AWS configuration files do not have."
            ) from None
        except aws.ParamValidationError:
            raise BucketError("The {} cannot exist under this name; check {}.", self.name, self.named_by) from None
        except (ResponseParserError, KeyError, ValueError, RecursionError):  # of botocore, by another server
            raise BucketError("The {} answers unlike AWS; check AWS_ENDPOINT_URL.", self.name) from None
        except aws.BotoCoreError as error:
            raise BucketError("The {} cannot be used: {}.", self.name, type(error).__name__) from None

    def _refusal(self, error: aws.ClientError) -> BucketError:
        code = str(error.response.get("Error", {}).get("Code", ""))
        if code == "404" and error.operation_name == "HeadBucket":
            code = "NoSuchBucket"
        status, operation = status_of(error), error.operation_name
        if status >= 500 or status == 429 or code in _OVERLOADED:
            return self._unavailable(Message("is overloaded or failing ({} {})", status, code))
        code = "301" if status == 301 else code
        if code in REFUSALS:
            # One object that is refused so stands for all: no reader goes on to the next one.
            kind = BucketUnavailable if operation == "GetObject" else BucketError
            return kind(REFUSALS[code], self.name, self.named_by)
        if code == "InvalidObjectState":
            return ObjectArchived(
                "The {} holds the object in an archive; restore it before it is read.", self.name
            )
        if status == 403 and operation in {"GetObject", "HeadObject"}:
            return ObjectDenied(
                "The {} denied access: the credentials are wrong, or lack s3:GetObject. Without "
                "s3:ListBucket an object that is denied cannot be told apart from one that does not "
                "exist.",
                self.name,
            )
        if status == 403:
            needed = _PERMISSIONS.get(operation, operation)
            return BucketError("The {} denied access: the credentials are wrong, or lack {}.", self.name, needed)
        if operation == "AssumeRole":
            return BucketError("The {} refused the role; check EVIDENCE_ROLE_ARN.", self.name)
        return BucketError("The {} refused {}: {}.", self.name, operation, f"{status} {code}".strip())

    def _unavailable(self, what: Message) -> BucketUnavailable:
        hint = Message(
            "Run: toolkit status" if self.embedded else "Check the AWS_* variables and that the server is up."
        )
        return BucketUnavailable("The {} {}. {}", self.name, what, hint)
