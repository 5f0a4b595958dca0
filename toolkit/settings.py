"""Read the environment once, into one frozen value; each error names its variable and an example."""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final, Self, TypeVar
from zoneinfo import ZoneInfo

import platformdirs

from toolkit.contract.codes import CODES
from toolkit.contract.evidence import UtilityGroup
from toolkit.contract.people import UnassignedSales
from toolkit.errors import SettingsError

Choice = TypeVar("Choice", bound=StrEnum)
Value = TypeVar("Value")

_DATABASE_EXAMPLE: Final = "postgresql://user:password@host:5432/database"
_HOW_TO_ESCAPE: Final = (
    f"it must look like {_DATABASE_EXAMPLE}. In a password write @ as %40, : as %3A, / as %2F and % as %25."
)


def expanded(path: str | Path) -> Path:
    """Return the path with a home directory in the place of a leading ``~``.

    Raises:
        SettingsError: it is not known where that home is, or it is the address of a bucket.
    """
    if str(path).startswith("s3:/"):  # a Path has lost the second slash
        raise SettingsError("{} is in a bucket; a folder or file of this machine is wanted.", path)
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise SettingsError(
            "It is not known where the home directory in {} is. Write the path in full.", path
        ) from None


@dataclass(frozen=True, slots=True)
class Environment:
    """Variables by name; an empty one counts as not set, and one that is not set is ``None`` or empty.

    Every method may raise ``SettingsError``.
    """

    variables: Mapping[str, str]

    def text(self, *names: str) -> str | None:
        """Return the text of a variable, of the first that is set."""
        return next((text for name in names if (text := self.variables.get(name, "").strip())), None)

    def secret(self, name: str) -> str | None:
        """Return the text of a variable, or the contents of the file that the variable with ``_FILE`` names."""
        file = self.text(f"{name}_FILE")
        if file is None:
            return self.text(name)
        try:
            return Path(file).read_text(encoding="utf-8-sig").strip() or None
        except (OSError, UnicodeDecodeError):
            raise SettingsError("{}_FILE names a file that cannot be read", name) from None

    def read(self, name: str, parse: Callable[[str], Value], example: str) -> Value | None:
        """Return what ``parse`` makes of a text; it raises an error about a value that is not like ``example``."""
        text = self.text(name)
        try:
            return None if text is None else parse(text)
        except (ValueError, LookupError, OSError):  # ZoneInfo opens a file and looks a key up
            raise SettingsError("{} must look like {}", name, example) from None

    def choice(self, name: str, kind: type[Choice]) -> Choice | None:
        """Return a member of an enumeration."""
        try:
            return kind(text) if (text := self.text(name)) else None
        except ValueError:
            raise SettingsError("{} must be one of {}", name, ", ".join(kind)) from None

    def number(self, name: str, lowest: int, highest: int) -> int | None:
        """Return a whole number."""
        text = self.text(name)
        if text is None:
            return None
        if not (text.isascii() and text.isdigit() and len(text) < 20 and lowest <= int(text) <= highest):
            raise SettingsError("{} must be a whole number from {} to {}", name, lowest, highest)
        return int(text)

    def path(self, name: str) -> Path | None:
        """Return an absolute path."""
        text = self.text(name)
        try:
            return None if text is None else expanded(text).absolute()
        except SettingsError as error:
            raise SettingsError("{}: {}", name, error) from None

    def like(self, name: str, pattern: str, example: str) -> str | None:
        """Return a text that a pattern fits from its start."""
        text = self.text(name)
        if text is not None and not re.match(pattern, text):
            raise SettingsError("{} must look like {}", name, example)
        return text

    def items(self, name: str) -> tuple[str, ...]:
        """Return texts with commas between them."""
        return tuple(each.strip() for each in (self.text(name) or "").split(",") if each.strip())

    def endpoint(self, *names: str) -> str | None:
        """Return the address of a server, from the first of these variables that is set."""
        name = next((each for each in names if self.text(each)), names[-1])
        url = self.like(name, r"https?://[^/\s]", "https://s3.example.com")
        if url is not None and "@" in url:
            raise SettingsError(
                "{} must not hold a user or a password: they are not sent, and addresses are shown. Keys "
                "belong into AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
                name,
            )
        return url

    def database_url(self, name: str) -> str | None:
        """Return the URL of a PostgreSQL database for SQLAlchemy."""
        text = self.text(name)
        if text is None:
            return None
        # Commands that need no database do not wait for SQLAlchemy to load.
        from sqlalchemy.engine import make_url
        from sqlalchemy.exc import ArgumentError

        scheme, separator, rest = text.partition("://")
        if not separator or scheme not in {"postgres", "postgresql", "postgresql+psycopg"}:
            raise SettingsError("{} must look like {}", name, _DATABASE_EXAMPLE)
        url = f"postgresql+psycopg://{rest}"
        try:
            parts = make_url(url)
            parts.get_dialect()().create_connect_args(parts)
        except (ValueError, ArgumentError):  # both quote the text, which may hold a password
            raise SettingsError("{} cannot be understood; {}", name, _HOW_TO_ESCAPE) from None
        if "@" in f"{parts.host}{parts.database}":
            raise SettingsError("{} has more than one @; {}", name, _HOW_TO_ESCAPE)
        return url


def _addresses(text: str) -> frozenset[str]:
    return frozenset(str(ip_address(one.strip())) for one in text.split(",") if one.strip())


def _moment(text: str) -> datetime:
    if (moment := datetime.fromisoformat(text)).tzinfo is None:
        raise ValueError(text)
    return moment


DEFAULT_TIMEZONE: Final = "America/Sao_Paulo"
LONGEST_LIFE: Final = 366 * 86_400  # seconds for which a bearer token may be allowed to live
LONGEST_UPLOAD_TTL: Final = 12 * 3600  # seconds; the sync of the bucket looks so far back for uploads


def variable(
    name: str, read: Callable[..., Any], *limits: object, default: Any = None, secret: bool = False
) -> Any:
    """Return the field that ``read`` gives for a variable, ``default`` where that is not set."""
    return field(default=default, repr=not secret, metadata={"read": lambda given: read(given, name, *limits)})


@dataclass(frozen=True, slots=True)
class AwsSettings:
    """The access to a bucket: the standard ``AWS_*`` variables, of which boto3 looks up others, and a role."""

    access_key_id: str | None = variable("AWS_ACCESS_KEY_ID", Environment.text)
    secret_access_key: str | None = variable("AWS_SECRET_ACCESS_KEY", Environment.text, secret=True)
    session_token: str | None = variable("AWS_SESSION_TOKEN", Environment.text, secret=True)
    session_ends: datetime | None = variable(
        "AWS_CREDENTIAL_EXPIRATION", Environment.read, _moment, "2026-11-20T18:00:00Z"
    )
    """The end of the session of ``session_token``, where it is known."""
    profile: str | None = variable("AWS_PROFILE", Environment.text)
    region: str | None = variable("AWS_REGION", Environment.text, "AWS_DEFAULT_REGION")
    s3_endpoint: str | None = variable("AWS_ENDPOINT_URL_S3", Environment.endpoint, "AWS_ENDPOINT_URL")
    """Another server than Amazon's."""
    sts_endpoint: str | None = variable("AWS_ENDPOINT_URL_STS", Environment.endpoint, "AWS_ENDPOINT_URL")
    """The token service."""
    role_arn: str | None = variable("EVIDENCE_ROLE_ARN", Environment.text)
    embedded: bool = False  # whether they lead to the bucket that the toolkit started itself, and no variable does


def _home(given: Environment, name: str) -> Path:
    if (path := given.path(name)) is not None:
        return path
    if os.geteuid() == 0:
        return Path("/var/lib/evidence-toolkit")  # below folders that any account may enter
    try:
        return Path(platformdirs.user_data_dir("evidence-toolkit"))
    except RuntimeError:  # neither HOME nor an entry in the user database; shared services need no folder
        return Path("/nonexistent/evidence-toolkit")


def _deadlines(given: Environment, name: str) -> dict[str, int]:
    found = {}
    for part in given.items(name):
        one = re.fullmatch(rf"(([A-Z_]+)(/({'|'.join(UtilityGroup)}))?)=([0-9]{{1,3}})", part)
        if one is None or one[1] in found or one[2] not in CODES or CODES[one[2]].deadline is None:
            raise SettingsError(
                "{} {!r} must look like MISSING_POV=3 or MISSING_POV/D=2, once, with the code of a finding "
                "(toolkit explain), one of the utility groups {} and business days",
                *(name, part, ", ".join(UtilityGroup)),
            )
        found[one[1]] = int(one[5])
    return found


def _log_keys(given: Environment, name: str) -> tuple[str, ...]:
    keys = tuple((given.text(name) or "").split())
    if any(len(key) < 32 for key in keys):
        raise SettingsError("{}: a key has 32 characters or more; several are separated by spaces.", name)
    return keys


@dataclass(frozen=True, slots=True)
class Quotas:
    """The limits of one caller of the HTTP interface, who gets the answer 429 above them."""

    requests: int = variable("TOOLKIT_QUOTA_REQUESTS", Environment.number, 1, 10**9, default=6000)
    wrong_tokens: int = variable("TOOLKIT_QUOTA_WRONG_TOKENS", Environment.number, 1, 10**9, default=300)
    open_forms: int = variable("TOOLKIT_QUOTA_OPEN_FORMS", Environment.number, 1, 10**9, default=20)
    trusted_proxies: frozenset[str] = variable(
        "TOOLKIT_TRUSTED_PROXIES", Environment.read, _addresses, "127.0.0.1,10.0.0.7", default=frozenset()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that the environment decides; secrets are left out of its ``repr``.

    ``toolkit/README.md``, "Configuration", says what each is, in which unit.
    """

    home: Path = variable("TOOLKIT_HOME", _home)
    database_url: str | None = variable("DATABASE_URL", Environment.database_url, secret=True)
    """The shared PostgreSQL; ``None`` stands for the embedded one."""
    database_read_url: str | None = variable("DATABASE_READ_URL", Environment.database_url, secret=True)
    evidence_bucket: str | None = variable("EVIDENCE_BUCKET", Environment.text)
    """The shared bucket; ``None`` stands for the embedded one."""
    aws: AwsSettings
    service_sql: Path | None = variable("TOOLKIT_SERVICE_SQL", Environment.path)
    evidence_prefixes: tuple[str, ...] = variable("EVIDENCE_PREFIX", Environment.items)
    ignored_prefixes: tuple[str, ...] = variable("EVIDENCE_IGNORE_PREFIXES", Environment.items)
    relist_days: int = variable("TOOLKIT_RELIST_DAYS", Environment.number, 1, 365, default=7)
    timezone: ZoneInfo = variable(
        "TOOLKIT_TIMEZONE", Environment.read, ZoneInfo, DEFAULT_TIMEZONE, default=ZoneInfo(DEFAULT_TIMEZONE)
    )
    upload_ttl: int = variable("TOOLKIT_UPLOAD_TTL", Environment.number, 1, LONGEST_UPLOAD_TTL, default=3600)
    upload_max_bytes: int = variable(
        "TOOLKIT_UPLOAD_MAX_BYTES", Environment.number, 1, 5 * 1024**3, default=100 * 1024**2
    )
    verify_seconds: int = variable("TOOLKIT_VERIFY_SECONDS", Environment.number, 0, 7 * 86_400, default=900)
    deadlines: Mapping[str, int] = variable("TOOLKIT_DEADLINES", _deadlines)
    log_keys: tuple[str, ...] = variable("TOOLKIT_LOG_KEY", _log_keys, secret=True)
    log_signing_key: Path | None = variable("TOOLKIT_LOG_SIGNING_KEY", Environment.path)
    log_origin: str = variable(
        "TOOLKIT_LOG_ORIGIN",
        Environment.like,
        r"[^\s+]{1,200}$",
        "evidence.example.com/custody",
        default="evidence-toolkit/custody",
    )
    jwt_secret: str | None = variable("TOOLKIT_JWT_SECRET", Environment.text, secret=True)
    jwt_public_key: str | None = variable("TOOLKIT_JWT_PUBLIC_KEY", Environment.text, secret=True)
    jwt_audience: str | None = variable("TOOLKIT_JWT_AUDIENCE", Environment.text)
    jwt_issuer: str | None = variable("TOOLKIT_JWT_ISSUER", Environment.text)
    jwt_max_ttl: int = variable("TOOLKIT_JWT_MAX_TTL", Environment.number, 1, LONGEST_LIFE, default=86_400)
    jwt_partner_claim: str = variable("TOOLKIT_JWT_PARTNER_CLAIM", Environment.text, default="partner")
    unassigned_sales: UnassignedSales = variable(
        "TOOLKIT_UNASSIGNED_SALES", Environment.choice, UnassignedSales, default=UnassignedSales.ANY
    )
    quotas: Quotas
    engine_memory: str = variable(
        "TOOLKIT_ENGINE_MEMORY", Environment.like, r"[1-9][0-9]*(MB|GB)$", "512MB or 2GB", default="500MB"
    )
    audits: str | None = variable("TOOLKIT_AUDITS", Environment.text)
    tsa_url: str | None = variable("TOOLKIT_TSA_URL", Environment.text)
    scorecard: Path | None = variable("TOOLKIT_SCORECARD", Environment.path)
    privacy: Path | None = variable("TOOLKIT_PRIVACY", Environment.path)
    erasure_ledger: Path | None = variable("TOOLKIT_ERASURE_LEDGER", Environment.path)
    audits_inputs: int = variable("TOOLKIT_AUDITS_INPUTS", Environment.number, 1, 10_000, default=30)
    audits_days: int = variable("TOOLKIT_AUDITS_DAYS", Environment.number, 1, 36_600, default=365)
    spark_url: str | None = variable("TOOLKIT_SPARK_URL", Environment.like, r"sc://[^/\s]", "sc://localhost:15002")

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Self:
        """Read the settings; an empty variable counts as not set.

        Raises:
            SettingsError: naming the variable, what is wrong with it and an example of a good value.
        """
        given = Environment(environ)
        if (given.text("AWS_ACCESS_KEY_ID") is None) != (given.text("AWS_SECRET_ACCESS_KEY") is None):
            raise SettingsError("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY must be set together")
        return cls(
            aws=AwsSettings(**read_fields(AwsSettings, given)),
            quotas=Quotas(**read_fields(Quotas, given)),
            **read_fields(cls, given),
        )


def read_fields(kind: type[Any], given: Environment) -> dict[str, Any]:
    """Return the fields of ``kind`` whose variables are set."""
    read = {each.name: each.metadata["read"](given) for each in fields(kind) if each.metadata}
    return {name: value for name, value in read.items() if value is not None}


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
