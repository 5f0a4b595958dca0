"""Read the environment once, into one frozen value."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from ipaddress import ip_address
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import platformdirs

from toolkit.domain.codes import CODES
from toolkit.domain.partners import UnassignedSales
from toolkit.errors import SettingsError

ROOT_HOME: Final = Path("/var/lib/evidence-toolkit")
"""Root's home of the embedded services, below folders that any account may enter."""

DEFAULT_TIMEZONE: Final = "America/Sao_Paulo"
DEFAULT_UPLOAD_TTL: Final = 3600
LONGEST_UPLOAD_TTL: Final = 12 * 3600
"""Seconds; the sync of the bucket looks so far back for uploads."""
DEFAULT_PICTURE_DAYS: Final = 7
DEFAULT_DISAPPEARANCE: Final = 50
DEFAULT_UPLOAD_MAX: Final = 100 * 1024 * 1024
DEFAULT_VERIFY_SECONDS: Final = 900
DEFAULT_VERIFY_BYTES: Final = 20 * 1024**3
DEFAULT_TOKEN_TTL: Final = 86_400
DEFAULT_PARTNER_CLAIM: Final = "partner"


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
    picture_days: int = DEFAULT_PICTURE_DAYS
    """Days within which every object of the bucket is looked at again (``TOOLKIT_PICTURE_DAYS``)."""
    disappearance_percent: int = DEFAULT_DISAPPEARANCE
    """Share of objects, sales or records above which their disappearance must be confirmed
    (``TOOLKIT_DISAPPEARANCE_PERCENT``)."""
    timezone: ZoneInfo = field(default_factory=lambda: ZoneInfo(DEFAULT_TIMEZONE))
    """The zone of times that are written without an offset (``TOOLKIT_TIMEZONE``)."""
    upload_ttl: int = DEFAULT_UPLOAD_TTL
    """Life of upload credentials in seconds (``TOOLKIT_UPLOAD_TTL``)."""
    upload_max_bytes: int = DEFAULT_UPLOAD_MAX
    """Largest evidence file in bytes (``TOOLKIT_UPLOAD_MAX_BYTES``)."""
    verify_seconds: int = DEFAULT_VERIFY_SECONDS
    """Seconds that an audit of now spends on verifying contents first (``TOOLKIT_VERIFY_SECONDS``)."""
    verify_bytes: int = DEFAULT_VERIFY_BYTES
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
    jwt_max_ttl: int = DEFAULT_TOKEN_TTL
    """Longest life of a token in seconds (``TOOLKIT_JWT_MAX_TTL``)."""
    jwt_partner_claim: str = DEFAULT_PARTNER_CLAIM
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
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> Settings:
        """Read the settings; an empty variable counts as not set.

        Raises:
            SettingsError: naming the variable, what is wrong with it and an example of a good value.
        """

        def value(name: str) -> str | None:
            return environ.get(name, "").strip() or None

        return cls(
            home=_home(value("TOOLKIT_HOME")),
            engine_memory=_memory(value("TOOLKIT_ENGINE_MEMORY")),
            spark_url=_spark(value("TOOLKIT_SPARK_URL")),
            database_url=_database_url("DATABASE_URL", value("DATABASE_URL")),
            database_read_url=_database_url("DATABASE_READ_URL", value("DATABASE_READ_URL")),
            evidence_bucket=value("EVIDENCE_BUCKET"),
            evidence_role_arn=value("EVIDENCE_ROLE_ARN"),
            evidence_prefixes=_prefixes(value("EVIDENCE_PREFIX")),
            ignored_prefixes=_prefixes(value("EVIDENCE_IGNORE_PREFIXES")),
            picture_days=_between(
                "TOOLKIT_PICTURE_DAYS", value("TOOLKIT_PICTURE_DAYS"), DEFAULT_PICTURE_DAYS, 1, 365
            ),
            disappearance_percent=_between(
                "TOOLKIT_DISAPPEARANCE_PERCENT",
                value("TOOLKIT_DISAPPEARANCE_PERCENT"),
                DEFAULT_DISAPPEARANCE,
                1,
                100,
            ),
            aws=_aws(value),
            service_map=_path(value("TOOLKIT_SERVICE_MAP")),
            timezone=_timezone(value("TOOLKIT_TIMEZONE") or DEFAULT_TIMEZONE),
            upload_ttl=_between(
                "TOOLKIT_UPLOAD_TTL", value("TOOLKIT_UPLOAD_TTL"), DEFAULT_UPLOAD_TTL, 1, LONGEST_UPLOAD_TTL
            ),
            upload_max_bytes=_between(
                "TOOLKIT_UPLOAD_MAX_BYTES", value("TOOLKIT_UPLOAD_MAX_BYTES"), DEFAULT_UPLOAD_MAX, 1, 5 * 1024**3
            ),
            verify_seconds=_between(
                "TOOLKIT_VERIFY_SECONDS", value("TOOLKIT_VERIFY_SECONDS"), DEFAULT_VERIFY_SECONDS, 0, 7 * 86400
            ),
            verify_bytes=_between(
                "TOOLKIT_VERIFY_BYTES", value("TOOLKIT_VERIFY_BYTES"), DEFAULT_VERIFY_BYTES, 0, 1024**5
            ),
            deadlines=_deadlines(value("TOOLKIT_DEADLINES")),
            log_keys=_log_keys(value("TOOLKIT_LOG_KEY")),
            jwt_secret=value("TOOLKIT_JWT_SECRET"),
            jwt_public_key=value("TOOLKIT_JWT_PUBLIC_KEY"),
            jwt_audience=value("TOOLKIT_JWT_AUDIENCE"),
            jwt_issuer=value("TOOLKIT_JWT_ISSUER"),
            jwt_jwks=_path(value("TOOLKIT_JWT_JWKS")),
            jwt_max_ttl=_between(
                "TOOLKIT_JWT_MAX_TTL", value("TOOLKIT_JWT_MAX_TTL"), DEFAULT_TOKEN_TTL, 1, 366 * 86_400
            ),
            jwt_partner_claim=value("TOOLKIT_JWT_PARTNER_CLAIM") or DEFAULT_PARTNER_CLAIM,
            unassigned_sales=_unassigned(value("TOOLKIT_UNASSIGNED_SALES")),
            quotas=_quotas(value),
        )


def _path(text: str | None) -> Path | None:
    return None if text is None else Path(text).expanduser().absolute()


def _unassigned(text: str | None) -> UnassignedSales:
    try:
        return UnassignedSales(text or UnassignedSales.ANY)
    except ValueError:
        raise SettingsError(f"TOOLKIT_UNASSIGNED_SALES must be one of {', '.join(UnassignedSales)}") from None


def _quotas(value: Callable[[str], str | None]) -> Quotas:
    def number(name: str, default: int) -> int:
        return _between(name, value(name), default, 1, 1_000_000_000)

    usual = Quotas()
    return Quotas(
        requests=number("TOOLKIT_QUOTA_REQUESTS", usual.requests),
        wrong_tokens=number("TOOLKIT_QUOTA_WRONG_TOKENS", usual.wrong_tokens),
        open_forms=number("TOOLKIT_QUOTA_OPEN_FORMS", usual.open_forms),
        trusted_proxies=_addresses("TOOLKIT_TRUSTED_PROXIES", value("TOOLKIT_TRUSTED_PROXIES")),
    )


def _addresses(name: str, text: str | None) -> frozenset[str]:
    try:
        return frozenset(str(ip_address(one.strip())) for one in (text or "").split(",") if one.strip())
    except ValueError:
        raise SettingsError(f"{name} must list addresses, such as 127.0.0.1,10.0.0.7") from None


def file_mode_of(environ: Mapping[str, str]) -> int:
    """Return the mode of reports, notebooks and the history (``TOOLKIT_FILE_MODE``): owner and group by default.

    Raises:
        SettingsError: it is no mode of a file, or not even its owner may read and write it.
    """
    text = environ.get("TOOLKIT_FILE_MODE", "").strip() or "0640"
    mode = int(text, 8) if re.fullmatch(r"0?[0-7]{3}", text) else 0
    if mode & 0o600 != 0o600 or mode & 0o111:
        raise SettingsError("TOOLKIT_FILE_MODE must be a mode of files such as 0640 (owner and group) or 0600")
    return mode


def _home(text: str | None) -> Path:
    if text is not None:
        return Path(text).expanduser().absolute()
    if os.geteuid() == 0:
        return ROOT_HOME
    return Path(platformdirs.user_data_dir("evidence-toolkit"))


_DATABASE_EXAMPLE: Final = "postgresql://user:password@host:5432/database"
_HOW_TO_ESCAPE: Final = (
    f"it must look like {_DATABASE_EXAMPLE}. In a password write @ as %40, : as %3A, / as %2F and % as %25."
)


def _database_url(name: str, text: str | None) -> str | None:
    if text is None:
        return None
    # Commands that need no database do not wait for SQLAlchemy to load.
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    scheme, separator, rest = text.partition("://")
    if not separator or scheme not in {"postgres", "postgresql", "postgresql+psycopg"}:
        raise SettingsError(f"{name} must look like {_DATABASE_EXAMPLE}")
    try:
        url = _with_several_hosts(f"postgresql+psycopg://{rest}")
        parts = make_url(url)
    except (ValueError, ArgumentError):  # both quote the text, which may hold a password
        raise SettingsError(f"{name} cannot be understood; {_HOW_TO_ESCAPE}") from None
    if "@" in f"{parts.host}{parts.database}":
        raise SettingsError(f"{name} has more than one @; {_HOW_TO_ESCAPE}")
    return url


def _with_several_hosts(url: str) -> str:
    """Return the URL with libpq's ``host1:5432,host2:5432`` written as SQLAlchemy takes it, once for each host."""
    several = re.fullmatch(
        r"(?P<start>[^/]+://(?:[^/?]*@)?)(?P<hosts>[^/?@]*,[^/?@]*)(?P<path>/[^?]*)?(\?(?P<query>.*))?", url
    )
    if several is None:
        return url
    hosts = "&".join(f"host={host}" for host in several["hosts"].split(","))
    return f"{several['start']}{several['path'] or '/'}?{hosts}" + (
        f"&{several['query']}" if several["query"] else ""
    )


def _aws(value: Callable[[str], str | None]) -> AwsSettings:
    if (value("AWS_ACCESS_KEY_ID") is None) != (value("AWS_SECRET_ACCESS_KEY") is None):
        raise SettingsError("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY must be set together")
    return AwsSettings(
        access_key_id=value("AWS_ACCESS_KEY_ID"),
        secret_access_key=value("AWS_SECRET_ACCESS_KEY"),
        session_token=value("AWS_SESSION_TOKEN"),
        session_ends=_moment("AWS_CREDENTIAL_EXPIRATION", value("AWS_CREDENTIAL_EXPIRATION")),
        profile=value("AWS_PROFILE"),
        region=value("AWS_REGION") or value("AWS_DEFAULT_REGION"),
        s3_endpoint=_endpoint(value, "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
        sts_endpoint=_endpoint(value, "AWS_ENDPOINT_URL_STS", "AWS_ENDPOINT_URL"),
    )


def _prefixes(text: str | None) -> tuple[str, ...]:
    return tuple(each.strip() for each in (text or "").split(",") if each.strip())


def _endpoint(value: Callable[[str], str | None], *names: str) -> str | None:
    for name in names:
        if (url := value(name)) is not None:
            if not re.match(r"https?://[^/\s]", url):
                raise SettingsError(f"{name} must look like https://s3.example.com")
            if "@" in url:
                raise SettingsError(
                    f"{name} must not hold a user or a password: they are not sent, and addresses are shown. Keys "
                    "belong into AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
                )
            return url
    return None


def _moment(name: str, text: str | None) -> datetime | None:
    if text is None:
        return None
    with suppress(ValueError):
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            return moment
    raise SettingsError(f"{name} must be a time with its offset, such as 2026-11-20T18:00:00Z")


def _deadlines(text: str | None) -> dict[str, int]:
    found = {}
    for part in filter(None, map(str.strip, (text or "").split(","))):
        given = re.fullmatch(r"(([A-Z_]+)(?:/[^=]+)?)=([0-9]{1,3})", part)
        if given is None or given[2] not in CODES or CODES[given[2]].deadline is None:
            raise SettingsError(
                f"TOOLKIT_DEADLINES {part!r} must look like MISSING_POV=3 or MISSING_POV/D=2, with the code of a "
                "finding (toolkit explain) and business days"
            )
        found[given[1]] = int(given[3])
    return found


def _memory(text: str | None) -> str:
    if text is None:
        return "2GB"
    if not re.fullmatch(r"[1-9][0-9]*(MB|GB)", text):
        raise SettingsError("TOOLKIT_ENGINE_MEMORY must look like 512MB or 2GB")
    return text


def _spark(text: str | None) -> str | None:
    if text is not None and not re.match(r"sc://[^/\s]", text):
        raise SettingsError("TOOLKIT_SPARK_URL must look like sc://localhost:15002")
    return text


def _timezone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise SettingsError(
            f"TOOLKIT_TIMEZONE {name!r} is no known zone; write one like America/Sao_Paulo"
        ) from None


def _log_keys(text: str | None) -> tuple[str, ...]:
    keys = tuple((text or "").split())
    if any(len(key) < 32 for key in keys):
        raise SettingsError("TOOLKIT_LOG_KEY: a key has 32 characters or more; several are separated by spaces.")
    return keys


def _between(name: str, text: str | None, default: int, lowest: int, highest: int) -> int:
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and lowest <= int(text) <= highest):
        raise SettingsError(f"{name} must be a whole number from {lowest} to {highest}")
    return int(text)
