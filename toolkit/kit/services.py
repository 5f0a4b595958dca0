"""Assemble what operations are given: settings, database, bucket and clock; and one sale, with its files."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import date, datetime
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self
from uuid import UUID

import sqlalchemy as sa

from toolkit import embedded
from toolkit.atomic_files import PrivateFolder, atomic_file, make_once
from toolkit.contract.deadlines import Clock, Deadlines, wall_clock
from toolkit.contract.events import CustodyEvent, LogKeys
from toolkit.database import schema
from toolkit.database.belonging import check_service, identities_of, notice_restore, pending_restore
from toolkit.database.connection import Database, among
from toolkit.database.service import Service, clients, load_service
from toolkit.database.tables import audit_runs
from toolkit.errors import InvalidInput, LogDiffers, LogKeyMissing, NoAudit, SettingsError, ToolkitError
from toolkit.extras import require
from toolkit.kit.process import id_from, signed_in_account
from toolkit.kit.spoken import parse_timestamp, set_language
from toolkit.log.bundle import bundle
from toolkit.log.events import record_event
from toolkit.log.notes import Checkpoint, LogSigner, SignedState, new_key
from toolkit.log.sealing import goes_on, may_record, newest_checkpoint, prove, seal_events
from toolkit.progress import Progress
from toolkit.settings import Settings, expanded

if TYPE_CHECKING:
    from toolkit.audit.folder import Audit
    from toolkit.audit.publish import AuditPlan
    from toolkit.audit.sale_case import SaleCase
    from toolkit.bucket.client import Bucket
    from toolkit.bucket.file_store import FileStore
    from toolkit.contract.evidence import Withdrawal
    from toolkit.evidence.records import Link

Moment = str | datetime | None
"""A datetime, or a text such as 2026-11-20 (its end) or 2026-11-20 18:00; ``None`` or blank: now."""

_LOG_KEYS: Final = "custody-log.key"
_LOG_SIGNING_KEY: Final = "custody-log.pem"


class Services:
    """The database and the bucket of one user of the toolkit, each opened at its first use.

    Where the environment names no shared one, the embedded service is started, and its schema or bucket is
    made ready. A shared database is only checked.

    Args:
        environ: the variables that say where they are; by default those of the process.
        clock: tells now.
        progress: is told how far a call is.
    """

    pool_size = 5  # database connections to keep: as many as threads that use them at once

    def __init__(
        self,
        environ: Mapping[str, str] | None = None,
        *,
        clock: Clock = wall_clock,
        progress: Progress | None = None,
    ) -> None:
        self.environ = os.environ if environ is None else environ  # no default: help() shows its secrets
        self.clock, self.progress = clock, progress or Progress()
        set_language(self.environ)

    @cached_property
    def settings(self) -> Settings:
        """The settings that the environment gives."""
        return Settings.from_environment(self.environ)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @cached_property
    def database(self) -> Database:
        """The database, with a schema that fits this toolkit, of the service that its data are about.

        Raises:
            WrongService: they are about another one.
        """
        self.any_service.run(check_service)
        return self.any_service

    @cached_property
    def any_service(self) -> Database:
        """The database, whatever service it belongs to: to look at, and to confirm that it moved."""
        database = self.opened(self.service)
        try:
            if not database.embedded:
                schema.check(database)
            elif database.run(schema.revision) != schema.newest_revision():
                schema.upgrade(database, service_tables=True)
        except ToolkitError:
            database.dispose()
            raise
        return database

    def opened(self, service: Service | None = None) -> Database:
        """Open the database as it is, whether its schema fits or not."""
        url = self.settings.database_url
        given = url or embedded.database_url(self.settings.home), self.clock, signed_in_account()
        return Database(*given, embedded=url is None, service=service, pool_size=self.pool_size)

    @cached_property
    def replica(self) -> Database | None:
        """The replica that judges, where there is one; only a shared database has one."""
        url = self.settings.database_read_url
        if url is None or self.settings.database_url is None:
            return None
        return Database(url, service=self.service, variable="DATABASE_READ_URL")

    @cached_property
    def service(self) -> Service:
        """The statements that read and write the service's tables.

        Raises:
            SettingsError: their file cannot be read or used.
        """
        return load_service(self.settings.service_sql)

    @cached_property
    def log_keys(self) -> LogKeys:
        """The keys of the hashes in the custody log: those of ``TOOLKIT_LOG_KEY``, else of a file in the home.

        With the embedded database, which lies in the same folder, the file is made at its first use. For a shared
        database nobody makes a key by itself: one that is lost with this machine would leave a log that nobody can
        write out again.
        """
        if self.settings.log_keys:
            return LogKeys(self.settings.log_keys)
        path = self.settings.home / _LOG_KEYS
        if self.settings.database_url is None:
            make_once(path, f"{secrets.token_hex(32)}\n".encode())
        with suppress(FileNotFoundError):
            return LogKeys(tuple(path.read_text("ascii").split()))
        return LogKeys()

    @cached_property
    def bucket(self) -> Bucket:
        """The bucket."""
        # Commands that need no bucket do not wait for boto3 to load.
        from toolkit.bucket.client import Bucket

        return Bucket.open(self.settings, self.clock)

    @property
    def credentials_folder(self) -> Path:
        """The folder of the upload credentials that notebooks request; expired ones are removed from it."""
        return self.settings.home / "credentials"

    def file_store(self, target: str) -> FileStore:
        """Return the folder, or the prefix of a bucket, that ``target`` names."""
        from toolkit.bucket.file_store import open_store

        return open_store(target, self.settings)

    def audit_plan(self, place: str | None = None, *, spark: bool = False) -> AuditPlan:
        """Return where audits are, ``place`` or else that of the settings, and how they are made.

        Raises:
            SettingsError: Spark is asked for, and ``TOOLKIT_SPARK_URL`` is not set.
        """
        from toolkit.audit.publish import AuditPlan

        settings = self.settings
        if spark:
            require("spark", "Audits on Spark")
            if settings.spark_url is None:
                raise SettingsError(
                    "TOOLKIT_SPARK_URL must name the server of Spark Connect, such as sc://localhost:15002"
                )
        target = place or settings.audits
        if target is None:
            target = str(settings.home / "audits")
            settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        if "://" not in target:
            Path(target).expanduser().mkdir(parents=True, exist_ok=True, mode=0o700)
        deadlines = Deadlines(settings.timezone, settings.deadlines)
        return AuditPlan(self.file_store(target), settings, deadlines, settings.spark_url if spark else None)

    @cached_property
    def log_signer(self) -> LogSigner | None:
        """The key that signs the custody log: of ``TOOLKIT_LOG_SIGNING_KEY``, else one made in the home.

        ``None`` where the home cannot be written. Only the machine that has the key of a log seals it.

        Raises:
            SettingsError: the file that is named cannot be read, can be read by others, or is no such key.
        """
        path = self.settings.log_signing_key or self.settings.home / _LOG_SIGNING_KEY
        try:
            if self.settings.log_signing_key is None:
                path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                if not path.exists():
                    make_once(path, new_key())
        except OSError:
            return None
        return self._signer(path)

    def _signer(self, path: Path) -> LogSigner:
        try:
            if path.stat().st_mode & 0o077:
                raise SettingsError("{} can be read by others: chmod 600 {}", path, path)
            return LogSigner.read(self.settings.log_origin, path.read_bytes(), path)
        except OSError as error:
            raise SettingsError("{} cannot be read: {}", path, error.strerror or error) from None

    def change_log_key(self, path: Path) -> SignedState | None:
        """Seal the log by its key and by the one in a file together; that one alone signs from then on.

        Raises:
            SettingsError: the file is no such key, or can be read by others.
            LogKeyMissing: the key that signs this log is not here.
            InvalidInput: an older transaction keeps the change from being sealed now.
        """
        successor, signer = self._signer(path), self.log_signer
        with self.database.transaction() as connection:
            signed = newest_checkpoint(connection)
            if signer is not None and (signed is None or signed.vkey == str(signer.verifier)):
                new = str(successor.verifier)
                detail = {"old": str(signer.verifier), "new": new, "signature": signer.signature(f"{new}\n")}
                record_event(connection, CustodyEvent.KEY_ROTATED, self.clock(), detail)
        signed = self.seal_log(successor)
        if signed is None or signed.vkey != str(successor.verifier):
            raise InvalidInput("The key was not changed: an older transaction is under way. Try again.")
        return signed

    def seal_log(self, successor: LogSigner | None = None) -> SignedState | None:
        """Seal the custody log, and keep its newest checkpoint in the home: a log that is cut off later shows.

        It is filed by the database's own numbers, not by its address: after a failover it is compared, too. One
        that was adopted and has none yet is compared with that of its former place. A log that does not go on from
        the checkpoint kept before is sealed no more, which every audit tells until two people confirm it. A home
        that cannot be written keeps none.

        Raises:
            LogKeyMissing: the key that signs this log is not here.
            LogDiffers: the tree is not the one that the last checkpoint signed.
            InvalidInput: the database was restored, which nobody has confirmed yet.
        """
        with self.database.transaction() as connection:
            address, folder = self.database.address, self.settings.home / "checkpoints"
            named = [
                f"{each.cluster or address}/{each.database}/{each.name}" for each in identities_of(connection)
            ]
            places = [folder / sha256(each.encode()).hexdigest()[:16] for each in named]
            place, before = places[0], ""
            with suppress(OSError):
                before = next(filter(Path.exists, places), place).read_text(encoding="utf-8")
            kept = Checkpoint.parse(before.partition("\n\n")[0] + "\n")
            if kept is not None and not goes_on(connection, kept):
                notice_restore(connection, kept.root.hex())
            restored = pending_restore(connection)
        if restored is not None:
            raise InvalidInput("The custody log is not sealed. {}", restored)
        signed = seal_events(self.database, self.log_signer, self.log_keys, successor)
        if signed is not None and (signed.note != before or not place.exists()):
            with suppress(OSError, InvalidInput):
                place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                with atomic_file(place) as draft:
                    draft.write(signed.note)
        return signed

    def seal_if_possible(self) -> LogKeyMissing | LogDiffers | None:
        """Seal the custody log; return why that could not be done here."""
        try:
            self.seal_log()
        except (LogKeyMissing, LogDiffers) as error:
            return error
        except InvalidInput:  # audits tell of the restore by themselves
            return None
        return None

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """Yield a folder in the home that nobody else reads, and that goes with the block."""
        self.settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        with PrivateFolder(self.settings.home) as folder:
            yield folder

    def moment(self, given: Moment) -> datetime:
        """Return a past moment; without an offset it is in the time zone of the settings.

        Raises:
            InvalidInput: it is none, or lies in the future.
        """
        if given is None or (isinstance(given, str) and not given.strip()):
            return self.clock()
        return parse_timestamp(str(given), timezone=self.settings.timezone, now=self.clock())

    def today(self) -> date:
        """Return the day in the time zone of the settings."""
        return self.clock().astimezone(self.settings.timezone).date()

    def path(self, given: str | Path) -> Path:
        """Return a path; in JupyterLab relative ones start at the folder that ``make lab`` works in."""
        work = self.environ.get("TOOLKIT_WORK")
        return Path(work, expanded(given)) if work and "ipykernel" in sys.modules else expanded(given)

    def last_audit(self) -> Audit:
        """Open the newest audit of now of this database (several may share a store).

        Raises:
            NoAudit: there is none yet.
        """
        from toolkit.audit.folder import list_audits, name_of, open_audit

        plan = self.audit_plan()
        with self.database.transaction() as connection:
            runs = set(map(str, connection.scalars(sa.select(audit_runs.c.id))))
        for name in reversed(list_audits(plan.store)):
            found = open_audit(name, plan.store, plan.copies)
            copied = not name.startswith(name_of(found.facts.as_of, ()))  # from an older one
            if found.facts.run in runs and not copied:
                return found
        raise NoAudit

    def unmask(self, reason: str, what: str, **sale: str) -> None:
        """Have the custody log tell who saw personal data, why, and of which sale if it is one.

        Raises:
            InvalidInput: there is no reason.
        """
        if not reason.strip():
            raise InvalidInput("Say why whole personal data are shown; the custody log keeps the reason.")
        with self.database.transaction() as connection:
            detail = {"account": signed_in_account(), "reason": reason.strip(), "what": what, **sale}
            record_event(connection, CustodyEvent.UNMASKED, self.clock(), detail)

    def cpfs(self, client_ids: Iterable[str]) -> dict[str, str]:
        """Return the whole CPF of each client."""
        wanted = among(clients.c.id, map(UUID, client_ids))
        with self.database.transaction() as connection:
            rows = connection.execute(sa.select(clients.c.id, clients.c.cpf).where(wanted))
            return {str(client_id): cpf for client_id, cpf in rows}

    def record_report(self, files: Mapping[str, str]) -> tuple[str | None, Mapping[str, bytes]]:
        """Record the SHA-256 of each file of a report in the custody log, and prove it.

        Returns:
            The root of the log under which it is, and the files to lay beside: the entry, its proof and what
            explains them. ``None`` and no files where it cannot be proven yet (an older transaction is under way),
            where the log's key is not here, and where this role or session may only read.
        """
        with self.database.transaction() as connection:
            if not may_record(connection):
                return None, {}
            event = record_event(connection, CustodyEvent.REPORTED, self.clock(), {"files": dict(files)})
        self.seal_if_possible()
        proven = self.database.run(prove, event)
        return (None, {}) if proven is None else (proven[2].root, bundle(*proven))

    def case_of(self, sale_id: str, unmask: str | None = None, what: str = "") -> tuple[SaleCase, str | None]:
        """Return a sale and the CPF of its client; where they are shown unmasked, the custody log tells so."""
        from toolkit.audit.sale_case import sale_case

        audit = None
        with suppress(NoAudit):
            audit = self.last_audit().verify("findings")
        case = sale_case(self.database, str(sale_id).strip(), audit=audit)
        if unmask is not None:
            self.unmask(unmask, what, sale=case.sale_id)
        client = str(case.sale.client_id or "")
        return case, self.cpfs([client]).get(client) if client else None

    def files_of(
        self, keys: Mapping[UUID, str], reason: str, folder: Path, *, by: str | None = None
    ) -> Iterator[tuple[UUID, Path]]:
        """Bring the files under the keys of records into a folder; the custody log tells of each first."""
        for record, key in keys.items():
            found = self.bucket.head(key)
            if found is None:
                continue
            self.link(record, reason=reason, by=by, seconds=1)
            suffix = Path(key).suffix.lower()
            path = folder / f"{record}{suffix if suffix[1:].isalnum() else ''}"
            with self.bucket.download(key, etag=found.etag) as (chunks, _), path.open("wb") as file:
                file.writelines(chunks)
            yield record, path

    def withdraw(self, evidence_id: UUID | str, *, reason: str, by: str, approved_by: str) -> Withdrawal:
        """Take an evidence record out of the count, once and for all; the file stays in the bucket.

        Raises:
            EvidenceNotFound: no record has this id.
            WithdrawalRefused: the approver is the same person, a text is missing, or it was withdrawn before.
        """
        from toolkit.evidence.records import withdraw

        record = id_from(evidence_id)
        return withdraw(self.database, record, reason=reason, withdrawn_by=by, approved_by=approved_by)

    def link(self, evidence_id: UUID | str, *, reason: str, by: str | None = None, seconds: int = 300) -> Link:
        """Make a link that opens one file for some seconds; the custody log tells who made it and why.

        Raises:
            EvidenceNotFound: no record has this id, or there is no file.
        """
        from toolkit.evidence.records import open_evidence

        record = id_from(evidence_id)
        return open_evidence(self.database, self.bucket, record, reason=reason, opened_by=by, seconds=seconds)

    def close(self) -> None:
        """Close what was opened; embedded services keep running for the others."""
        for name in ("any_service", "replica"):
            if (database := self.__dict__.get(name)) is not None:
                database.dispose()
        if any(self.credentials_folder.glob("*.jsonl")):
            from toolkit.evidence.upload import remove_expired

            remove_expired(self.credentials_folder, self.clock())
