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

from toolkit.errors import BucketError, BucketUnavailable, ObjectArchived, ObjectDenied

_CREDENTIALS: Final = "check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"

_REFUSALS: Final = {
    "InvalidAccessKeyId": f"does not know the access key; {_CREDENTIALS}",
    "InvalidClientTokenId": f"does not know the access key; {_CREDENTIALS}",
    "UnrecognizedClientException": f"does not know the access key; {_CREDENTIALS}",
    "SignatureDoesNotMatch": f"refused the signature; {_CREDENTIALS}",
    "ExpiredToken": "says that the AWS session has ended; sign in again",
    "ExpiredTokenException": "says that the AWS session has ended; sign in again",
    "TokenRefreshRequired": "says that the AWS session has ended; sign in again",
    "InvalidToken": "refused the session token; check AWS_SESSION_TOKEN",
    "RequestTimeTooSkewed": "has another time than this machine; set the clock",
    "NoSuchBucket": "does not exist; check {named_by}, or create it",
    "PermanentRedirect": "is in another region; set AWS_REGION",
    "AuthorizationHeaderMalformed": "is in another region; set AWS_REGION",
    "IllegalLocationConstraintException": "is in another region; set AWS_REGION",
}
"""The meanings of error codes, as the end of a sentence that starts with the name of the server."""

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
    named_by: str = "EVIDENCE_BUCKET"
    """The setting, or the address of a person, that names the bucket."""

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
            raise self._unavailable("cannot be reached over TLS; AWS_CA_BUNDLE may name its certificate") from None
        except (aws.ConnectionError, aws.HTTPClientError, aws.IncompleteReadError):
            raise self._unavailable("does not answer") from None
        except _NO_LOGIN:
            raise BucketError(
                f"There are no AWS credentials for the {self.name}; set AWS_ACCESS_KEY_ID and "
                "AWS_SECRET_ACCESS_KEY, or AWS_PROFILE."
            ) from None
        except aws.ProfileNotFound:
            raise BucketError(
                "AWS_PROFILE names a profile that the AWS configuration files do not have."
            ) from None
        except aws.ParamValidationError:
            raise BucketError(f"The {self.name} cannot exist under this name; check {self.named_by}.") from None
        except aws.BotoCoreError as error:
            raise BucketError(f"The {self.name} cannot be used: {type(error).__name__}.") from None

    def _refusal(self, error: aws.ClientError) -> BucketError:
        code = str(error.response.get("Error", {}).get("Code", ""))
        if code == "404" and error.operation_name == "HeadBucket":
            code = "NoSuchBucket"
        status, operation = status_of(error), error.operation_name
        if status >= 500 or status == 429 or code in _OVERLOADED:
            return self._unavailable(f"is overloaded or failing ({status} {code})")
        if code in _REFUSALS:
            return BucketError(f"The {self.name} {_REFUSALS[code].format(named_by=self.named_by)}.")
        if code == "InvalidObjectState":
            return ObjectArchived(f"The {self.name} holds the object in an archive; restore it before it is read.")
        if status == 403 and operation in {"GetObject", "HeadObject"}:
            return ObjectDenied(
                f"The {self.name} denied access: the credentials are wrong, or lack s3:GetObject. Without "
                "s3:ListBucket an object that is denied cannot be told apart from one that does not exist."
            )
        if status == 403:
            needed = _PERMISSIONS.get(operation, operation)
            return BucketError(f"The {self.name} denied access: the credentials are wrong, or lack {needed}.")
        if status == 301:
            return BucketError(f"The {self.name} {_REFUSALS['PermanentRedirect']}.")
        if operation == "AssumeRole":
            return BucketError(f"The {self.name} refused the role; check EVIDENCE_ROLE_ARN.")
        return BucketError(f"The {self.name} refused {operation}: {f'{status} {code}'.strip()}.")

    def _unavailable(self, what: str) -> BucketUnavailable:
        hint = "Run: toolkit status" if self.embedded else "Check the AWS_* variables and that the server is up."
        return BucketUnavailable(f"The {self.name} {what}. {hint}")
