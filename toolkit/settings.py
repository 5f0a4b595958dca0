"""Read the environment once, into one frozen value."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Self
from zoneinfo import ZoneInfo

import platformdirs

from toolkit.domain.codes import CODES
from toolkit.domain.partners import UnassignedSales
from toolkit.environment import Environment
from toolkit.errors import SettingsError

ROOT_HOME: Final = Path("/var/lib/evidence-toolkit")
"""Root's home of the embedded services, below folders that any account may enter."""

DEFAULT_TIMEZONE: Final = "America/Sao_Paulo"
LONGEST_LIFE: Final = 366 * 86_400
"""Seconds for which a bearer token may be allowed to live."""

LONGEST_UPLOAD_TTL: Final = 12 * 3600
"""Seconds; the sync of the bucket looks so far back for uploads."""


@dataclass(frozen=True, slots=True)
class AwsSettings:
    """The standard ``AWS_*`` variables that lead to a shared bucket; boto3 looks up what is not set here."""

    access_key_id: str | None = None
    secret_access_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    session_ends: datetime | None = None
    """The end of the session of ``session_token``, where it is known (``AWS_CREDENTIAL_EXPIRATION``)."""
    profile: str | None = None
    region: str | None = None
    s3_endpoint: str | None = None
    """Another server than Amazon's (``AWS_ENDPOINT_URL_S3``, else ``AWS_ENDPOINT_URL``)."""
    sts_endpoint: str | None = None
    """The token service (``AWS_ENDPOINT_URL_STS``, else ``AWS_ENDPOINT_URL``)."""


@dataclass(frozen=True, slots=True)
class Quotas:
    """The limits of one caller of the HTTP interface, who gets the answer 429 above them."""

    requests: int = 6000
    """Requests a minute of one subject (``TOOLKIT_QUOTA_REQUESTS``)."""
    wrong_tokens: int = 300
    """Requests a minute without a valid token from one address (``TOOLKIT_QUOTA_WRONG_TOKENS``)."""
    open_forms: int = 20
    """Valid upload credentials at the same time for one sale and type (``TOOLKIT_QUOTA_OPEN_FORMS``)."""
    trusted_proxies: frozenset[str] = frozenset()
    """Addresses whose ``X-Forwarded-For`` is believed (``TOOLKIT_TRUSTED_PROXIES``)."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that the environment decides; secrets are left out of its ``repr``."""

    home: Path
    """The folder of the embedded services and their data (``TOOLKIT_HOME``)."""
    database_url: str | None = field(default=None, repr=False)
    """The shared PostgreSQL; ``None`` stands for the embedded one (``DATABASE_URL``)."""
    database_read_url: str | None = field(default=None, repr=False)
    """A replica of the shared PostgreSQL that judges (``DATABASE_READ_URL``)."""
    evidence_bucket: str | None = None
    """The shared bucket; ``None`` stands for the embedded one (``EVIDENCE_BUCKET``)."""
    evidence_role_arn: str | None = None
    """The role that signs upload forms where the ambient credentials carry no token."""
    aws: AwsSettings = AwsSettings()
    """The access to the shared bucket."""
    service_map: Path | None = None
    """The file that describes the sales service's own tables (``TOOLKIT_SERVICE_MAP``); see ``toolkit db map``."""
    evidence_prefixes: tuple[str, ...] = ()
    """The prefixes of evidence in the bucket; the whole bucket where there is none (``EVIDENCE_PREFIX``)."""
    ignored_prefixes: tuple[str, ...] = ()
    """Parts of the bucket that are nobody's evidence (``EVIDENCE_IGNORE_PREFIXES``)."""
    picture_days: int = 7
    """Days within which every object of the bucket is looked at again (``TOOLKIT_PICTURE_DAYS``)."""
    disappearance_percent: int = 50
    """Share of objects, sales or records above which their disappearance must be confirmed
    (``TOOLKIT_DISAPPEARANCE_PERCENT``)."""
    timezone: ZoneInfo = field(default_factory=lambda: ZoneInfo(DEFAULT_TIMEZONE))
    """The zone of times that are written without an offset (``TOOLKIT_TIMEZONE``)."""
    upload_ttl: int = 3600
    """Life of upload credentials in seconds (``TOOLKIT_UPLOAD_TTL``)."""
    upload_max_bytes: int = 100 * 1024**2
    """Largest evidence file in bytes (``TOOLKIT_UPLOAD_MAX_BYTES``)."""
    verify_seconds: int = 900
    """Seconds that an audit of now spends on verifying contents first (``TOOLKIT_VERIFY_SECONDS``)."""
    verify_bytes: int = 20 * 1024**3
    """Bytes that an audit of now reads to verify contents first (``TOOLKIT_VERIFY_BYTES``)."""
    deadlines: Mapping[str, int] = field(default_factory=dict)
    """Business days by code, or by code and utility group, where they differ from the catalogue's
    (``TOOLKIT_DEADLINES``)."""
    log_keys: tuple[str, ...] = field(default=(), repr=False)
    """The keys of the hashes in the custody log, the newest first (``TOOLKIT_LOG_KEY``)."""
    jwt_secret: str | None = field(default=None, repr=False)
    """The HS256 secret of bearer tokens (``TOOLKIT_JWT_SECRET``)."""
    jwt_public_key: str | None = field(default=None, repr=False)
    """The RS256 or ES256 public key of bearer tokens, PEM (``TOOLKIT_JWT_PUBLIC_KEY``)."""
    jwt_audience: str | None = None
    """The audience that tokens must name, where set (``TOOLKIT_JWT_AUDIENCE``)."""
    jwt_issuer: str | None = None
    """The issuer that tokens must name, where set (``TOOLKIT_JWT_ISSUER``)."""
    jwt_jwks: Path | None = None
    """A file with a JSON Web Key Set, for several keys at once (``TOOLKIT_JWT_JWKS``)."""
    jwt_max_ttl: int = 86_400
    """Longest life of a token in seconds (``TOOLKIT_JWT_MAX_TTL``)."""
    jwt_partner_claim: str = "partner"
    """The claim of a token that names the partner (``TOOLKIT_JWT_PARTNER_CLAIM``)."""
    unassigned_sales: UnassignedSales = UnassignedSales.ANY
    """The partners that may ask for a sale that names no partner (``TOOLKIT_UNASSIGNED_SALES``)."""
    quotas: Quotas = Quotas()
    """The limits of one caller of the HTTP interface."""
    engine_memory: str = "2GB"
    """Memory of DuckDB when it judges a snapshot (``TOOLKIT_ENGINE_MEMORY``)."""
    spark_url: str | None = None
    """The server of Spark Connect, ``sc://host:port`` (``TOOLKIT_SPARK_URL``)."""

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> Self:
        """Read the settings; an empty variable counts as not set.

        Raises:
            SettingsError: naming the variable, what is wrong with it and an example of a good value.
        """
        given = Environment(environ)
        return cls(
            home=given.path("TOOLKIT_HOME") or _usual_home(),
            aws=_aws(given),
            quotas=_quotas(given),
            **_where_set(
                database_url=given.database_url("DATABASE_URL"),
                database_read_url=given.database_url("DATABASE_READ_URL"),
                evidence_bucket=given.text("EVIDENCE_BUCKET"),
                evidence_role_arn=given.text("EVIDENCE_ROLE_ARN"),
                service_map=given.path("TOOLKIT_SERVICE_MAP"),
                evidence_prefixes=given.items("EVIDENCE_PREFIX"),
                ignored_prefixes=given.items("EVIDENCE_IGNORE_PREFIXES"),
                picture_days=given.number("TOOLKIT_PICTURE_DAYS", 1, 365),
                disappearance_percent=given.number("TOOLKIT_DISAPPEARANCE_PERCENT", 1, 100),
                timezone=given.timezone("TOOLKIT_TIMEZONE"),
                upload_ttl=given.number("TOOLKIT_UPLOAD_TTL", 1, LONGEST_UPLOAD_TTL),
                upload_max_bytes=given.number("TOOLKIT_UPLOAD_MAX_BYTES", 1, 5 * 1024**3),
                verify_seconds=given.number("TOOLKIT_VERIFY_SECONDS", 0, 7 * 86_400),
                verify_bytes=given.number("TOOLKIT_VERIFY_BYTES", 0, 1024**5),
                deadlines=_deadlines(given),
                log_keys=_log_keys(given),
                jwt_secret=given.text("TOOLKIT_JWT_SECRET"),
                jwt_public_key=given.text("TOOLKIT_JWT_PUBLIC_KEY"),
                jwt_audience=given.text("TOOLKIT_JWT_AUDIENCE"),
                jwt_issuer=given.text("TOOLKIT_JWT_ISSUER"),
                jwt_jwks=given.path("TOOLKIT_JWT_JWKS"),
                jwt_max_ttl=given.number("TOOLKIT_JWT_MAX_TTL", 1, LONGEST_LIFE),
                jwt_partner_claim=given.text("TOOLKIT_JWT_PARTNER_CLAIM"),
                unassigned_sales=given.choice("TOOLKIT_UNASSIGNED_SALES", UnassignedSales),
                engine_memory=given.like("TOOLKIT_ENGINE_MEMORY", r"[1-9][0-9]*(MB|GB)$", "512MB or 2GB"),
                spark_url=given.like("TOOLKIT_SPARK_URL", r"sc://[^/\s]", "sc://localhost:15002"),
            ),
        )


def file_mode_of(environ: Mapping[str, str]) -> int:
    """Return the mode of reports, notebooks and the history (``TOOLKIT_FILE_MODE``): owner and group by default.

    Raises:
        SettingsError: it is no mode of a file, or not even its owner may read and write it.
    """
    text = Environment(environ).text("TOOLKIT_FILE_MODE") or "0640"
    mode = int(text, 8) if re.fullmatch(r"0?[0-7]{3}", text) else 0
    if mode & 0o600 != 0o600 or mode & 0o111:
        raise SettingsError("TOOLKIT_FILE_MODE must be a mode of files such as 0640 (owner and group) or 0600")
    return mode


def _where_set(**values: Any) -> dict[str, Any]:
    """Return the values that are set, so that the defaults of the fields stand for the others."""
    return {name: value for name, value in values.items() if value is not None}


def _usual_home() -> Path:
    return ROOT_HOME if os.geteuid() == 0 else Path(platformdirs.user_data_dir("evidence-toolkit"))


def _quotas(given: Environment) -> Quotas:
    return Quotas(
        trusted_proxies=given.addresses("TOOLKIT_TRUSTED_PROXIES"),
        **_where_set(
            requests=given.number("TOOLKIT_QUOTA_REQUESTS", 1, 10**9),
            wrong_tokens=given.number("TOOLKIT_QUOTA_WRONG_TOKENS", 1, 10**9),
            open_forms=given.number("TOOLKIT_QUOTA_OPEN_FORMS", 1, 10**9),
        ),
    )


def _aws(given: Environment) -> AwsSettings:
    if (given.text("AWS_ACCESS_KEY_ID") is None) != (given.text("AWS_SECRET_ACCESS_KEY") is None):
        raise SettingsError("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY must be set together")
    return AwsSettings(
        access_key_id=given.text("AWS_ACCESS_KEY_ID"),
        secret_access_key=given.text("AWS_SECRET_ACCESS_KEY"),
        session_token=given.text("AWS_SESSION_TOKEN"),
        session_ends=given.moment("AWS_CREDENTIAL_EXPIRATION"),
        profile=given.text("AWS_PROFILE"),
        region=given.text("AWS_REGION") or given.text("AWS_DEFAULT_REGION"),
        s3_endpoint=given.endpoint("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
        sts_endpoint=given.endpoint("AWS_ENDPOINT_URL_STS", "AWS_ENDPOINT_URL"),
    )


def _deadlines(given: Environment) -> dict[str, int]:
    found = {}
    for part in given.items("TOOLKIT_DEADLINES"):
        one = re.fullmatch(r"(([A-Z_]+)(?:/[^=]+)?)=([0-9]{1,3})", part)
        if one is None or one[2] not in CODES or CODES[one[2]].deadline is None:
            raise SettingsError(
                f"TOOLKIT_DEADLINES {part!r} must look like MISSING_POV=3 or MISSING_POV/D=2, with the code of a "
                "finding (toolkit explain) and business days"
            )
        found[one[1]] = int(one[3])
    return found


def _log_keys(given: Environment) -> tuple[str, ...]:
    keys = tuple((given.text("TOOLKIT_LOG_KEY") or "").split())
    if any(len(key) < 32 for key in keys):
        raise SettingsError("TOOLKIT_LOG_KEY: a key has 32 characters or more; several are separated by spaces.")
    return keys
