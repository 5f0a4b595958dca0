"""Upload credentials in bulk: the command beside boto3's signing and a bare COPY of the records.

Goal at scale 1 (100,000 files): at most 1.3 times the floor, which is ``generate_presigned_post`` for each key
and one COPY of as many records. The peer asks for one file after the other, as the HTTP interface does.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import boto3
import sqlalchemy as sa
from botocore.config import Config

from tests.benchmarks.commands import Run, toolkit
from tests.benchmarks.timing import timed
from tests.contract.bodies import UPLOAD
from tests.own_services import own_home
from toolkit.domain.evidence import object_key
from toolkit.entrypoints.application_context import ApplicationContext
from toolkit.operations.request.single import UploadLimits, request_upload
from toolkit.settings import Settings
from toolkit.storage import embedded
from toolkit.storage.database import raw
from toolkit.storage.identifiers import new_ids

_FILES = 100_000
_PER_SALE = 2
_LIMITS = UploadLimits(3600, 1_000_000)
_BODY = {**UPLOAD, "fileName": "contrato assinado.pdf"}


def main(scale: float) -> None:
    """Print the seconds of each way, what the command is to the floor, and its peak of memory."""
    files = max(100, int(_FILES * scale))
    with own_home() as home:
        application = ApplicationContext(Settings.from_environment({"TOOLKIT_HOME": str(home)}))
        _sales(application, files // _PER_SALE)
        manifest = _manifest(home, files)
        command = _command(home, manifest)
        again = _command(home, manifest)
        signing = timed(lambda: _sign(home, files)).seconds
        copying = timed(lambda: _copy(application, files)).seconds
        single = timed(lambda: _one_by_one(application, files // 50)).seconds * 50
        application.close()
    floor = signing + copying
    print(f"{files:,} files              seconds   to the floor")
    for name, seconds in (
        ("boto3's signing", signing),
        ("COPY of the records", copying),
        ("floor: both", floor),
        ("toolkit credentials", command.seconds),
        ("... the same again", again.seconds),
        ("one by one (from 2 %)", single),
    ):
        print(f"{name:<24}{seconds:9.2f}{seconds / floor:12.2f}")
    print(f"peak of memory of the command: {command.peak_mb:.0f} MB")


def _sales(application: ApplicationContext, count: int) -> None:
    statement = sa.text(
        "INSERT INTO sales (id, utility_group, is_client_financial_responsible, created_at) "
        "SELECT 'VND-' || number, 'A', true, now() FROM generate_series(0, :last) AS number"
    )
    with application.database.transaction() as connection:
        connection.execute(statement, {"last": count})


def _manifest(home: Path, files: int) -> Path:
    path = home / "manifest.csv"
    with path.open("w", encoding="utf-8") as file:
        file.write("saleId;fileName;fileFormat;type;evidenceType\n")
        for number in range(files // _PER_SALE):
            file.write(f"VND-{number};gravação {number}.mp3;audio/mpeg;audio/mpeg;POV\n")
            file.write(f"VND-{number};contrato.pdf;application/pdf;application/pdf;DOC_CONTRATANTE\n")
    return path


def _command(home: Path, manifest: Path) -> Run:
    credentials = home / "credentials.jsonl"
    run = toolkit(
        ["credentials", "request", manifest, "--out", credentials], {**os.environ, "TOOLKIT_HOME": str(home)}
    )
    assert run.status == 0, run.output
    return run


def _sign(home: Path, files: int) -> None:
    access = embedded.bucket_access(home)
    client = boto3.client(
        "s3",
        endpoint_url=access.endpoint_url,
        region_name=access.region,
        aws_access_key_id=access.access_key,
        aws_secret_access_key=access.secret_key,
        aws_session_token="t" * 300,
        config=Config(signature_version="s3v4"),
    )
    now = datetime.now(UTC)
    for row in new_ids(files):
        client.generate_presigned_post(
            access.bucket,
            object_key(UUID(bytes=row.tobytes()), "contrato.pdf", now),
            Fields={"bucket": access.bucket},
            Conditions=[{"acl": "private"}, ["content-length-range", 1, 1_000_000]],
            ExpiresIn=3600,
        )
    client.close()


def _copy(application: ApplicationContext, files: int) -> None:
    now = datetime.now(UTC)
    ends, kind = now + timedelta(hours=1), "application/pdf"
    with (
        application.database.transaction() as connection,
        raw(connection).cursor().copy("COPY evidences FROM STDIN") as copy,
    ):
        for number, row in enumerate(new_ids(files)):
            evidence_id = UUID(bytes=row.tobytes())
            key = object_key(evidence_id, "contrato.pdf", now)
            sale = f"VND-{number // _PER_SALE}"
            copy.write_row((evidence_id, sale, "c.pdf", kind, kind, "DOC_CONTRATANTE", key, "bench", now, ends))


def _one_by_one(application: ApplicationContext, files: int) -> None:
    for number in range(files):
        request_upload(
            application.database,
            application.bucket,
            f"VND-{number}",
            _BODY,
            requested_by="bench",
            limits=_LIMITS,
            clock=application.clock,
        )
