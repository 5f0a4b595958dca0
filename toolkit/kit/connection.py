"""The toolkit as one object: a method for each command; values, DataFrames and results that show themselves."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

from toolkit.audit.waivers import add_waiver, revoke_waiver, waivers_at
from toolkit.database.belonging import check_bucket, pending_restore
from toolkit.errors import InvalidInput
from toolkit.extras import require
from toolkit.intake.registration import ClientQuality, client_quality
from toolkit.kit import results
from toolkit.kit.process import id_from, operation, signed_in_account
from toolkit.kit.services import Moment, Services
from toolkit.kit.shown import Shown, links, remark, sort_frames
from toolkit.kit.spoken import ProgressBar, current_language
from toolkit.progress import Progress

if TYPE_CHECKING:
    from toolkit.audit.changes import FindingChanges
    from toolkit.audit.object_history import Synced
    from toolkit.audit.reviews import Drawn
    from toolkit.audit.sale_case import SaleCase
    from toolkit.contract.waivers import Waiver
    from toolkit.evidence.completion import Completion
    from toolkit.evidence.contents import Verified
    from toolkit.evidence.credentials import ManifestResult
    from toolkit.evidence.records import EvidenceRecord
    from toolkit.evidence.upload import Uploaded
    from toolkit.intake.results import LoadResult
    from toolkit.intake.sales import SalesLoaded
    from toolkit.kit.audits import AuditResult
    from toolkit.kit.desk import ReviewDesk
    from toolkit.kit.privacy import Privacy
    from toolkit.kit.results import Given


def connect(database: str | None = None, bucket: str | None = None, *, progress: Progress | None = None) -> Kit:
    """Connect to the database and the bucket, each of which is opened at its first use.

    Args:
        database: ``postgresql://user:password@host:5432/name``; by default ``DATABASE_URL``, else an embedded one.
        bucket: its name; by default ``EVIDENCE_BUCKET``, else an embedded one.
        progress: is told how far a call is; by default a bar in notebooks and terminals.

    Raises:
        SettingsError: a variable of the environment is wrong.
    """
    given = {"DATABASE_URL": database, "EVIDENCE_BUCKET": bucket}
    kit = Kit(
        {**os.environ, **{name: value for name, value in given.items() if value is not None}},
        progress=progress or ProgressBar(sys.stderr),
    )
    kit.settings  # noqa: B018  # a wrong one is told now
    sort_frames()
    return kit


class Kit(Services):
    """The toolkit, connected to one database and one bucket; a context manager that closes them.

    Every method raises errors of ``toolkit.errors`` with the sentence that the command prints, such as
    ``DatabaseError``, ``BucketError`` and ``InvalidInput``. Nothing is printed.
    """

    @operation
    def load_clients(
        self,
        files: Given,
        *,
        dry_run: bool = False,
        out: str | Path | None = None,
        headings: Mapping[str, str] | None = None,
        sheet: str | None = None,
    ) -> Shown[LoadResult]:
        """Register the clients of CSV and XLSX files, or of a DataFrame.

        Args:
            files: one or several; of several, those that cannot be read are named, and the others are loaded.
            dry_run: check everything, and register nobody.
            out: the folder of the files of rejected rows; beside each file where there is none.
            headings: the field of a heading that is not recognised, ``-`` to ignore its column.
            sheet: that of workbooks; the one that has the headings where it is not named.

        Returns:
            ``result`` counts rows; ``rejected`` has the rows as they were, with ``line`` and ``errors``.

        Raises:
            UnreadableFile: no file can be read or has the headings.
        """
        from toolkit.intake.clients import load_clients

        with results.files_given(self, files, out, several=True) as (paths, folder, kept):
            result = load_clients(
                self.database,
                paths,
                out=folder,
                dry_run=dry_run,
                headings=headings,
                sheet=sheet or None,
                language=current_language(),
                progress=self.progress,
            )
            return kept(results.shown_clients(result))

    def client_quality(self, *, most: int = 500) -> Shown[ClientQuality]:
        """Look through the registered clients for doubtful ones, and those that are alike; CPFs are masked.

        Args:
            most: groups of clients to name of each likeness, the largest first.
        """
        return results.shown_quality(client_quality(self.database, self.today(), most))

    @operation
    def load_sales(
        self, file: Given, *, overwrite: bool = False, out: str | Path | None = None
    ) -> Shown[SalesLoaded]:
        """Take over the sales of a CSV or XLSX file, or of a DataFrame; a shared database is only compared.

        Args:
            file: has the columns saleId, clientId, utilityGroup, isClientFinancialResponsible, createdAt and may
                have partner and completedAt.
            overwrite: write into a shared database, over the service's own values.
            out: the folder of the files of rejected rows; beside the file where there is none.

        Raises:
            UnreadableFile: it is no table, or lacks a column.
        """
        from toolkit.intake.sales import load_sales

        with results.files_given(self, file, out) as ([path], folder, kept):
            loaded = load_sales(
                self.database,
                path,
                timezone=self.settings.timezone,
                write=overwrite or self.database.embedded,
                out=folder,
                language=current_language(),
            )
            return kept(results.shown_sales(loaded, path.name))

    @operation
    def request_credentials(self, manifest: Given, *, out: str | Path | None = None) -> Shown[ManifestResult]:
        """Ask for upload credentials for each file of a manifest; for none where a row is wrong.

        Each record keeps your account.

        Args:
            manifest: CSV, XLSX or a DataFrame with saleId, fileName, fileFormat, type, evidenceType.
            out: the credentials file, mode 0600; by default one in ``TOOLKIT_HOME``, for ``upload``.

        Raises:
            UnreadableFile: the manifest cannot be read, or lacks a column.
            WrongBucket: the database belongs to another bucket.
        """
        from toolkit.evidence.credentials import UploadLimits, request_manifest

        settings = self.settings
        limits = UploadLimits(settings.upload_ttl, settings.upload_max_bytes)
        with results.files_given(self, manifest) as ([path], _, _kept):
            target = self.path(out) if out else self.credentials_folder / f"{path.stem}.jsonl"
            if not out:
                target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            requested = request_manifest(self.database, self.bucket, path, target, limits, self.progress)
            return results.shown_request(requested, path.name, target)

    @operation
    def upload(self, forms: Shown[ManifestResult] | str | Path, folder: str | Path) -> Shown[Uploaded]:
        """Send files into the bucket; called again, it goes on where it was.

        Args:
            forms: what ``request_credentials`` returned, or a credentials file.
            folder: has ``saleId/fileName``, or ``fileName`` where names are unique.

        Raises:
            InvalidInput: the rows of the manifest were rejected, or the credentials file is none.
            WrongBucket: the database belongs to another bucket.
        """
        from toolkit.evidence.upload import destinations, upload_files

        if isinstance(forms, Shown) and forms.needs_attention:
            raise InvalidInput("Nothing was issued, so nothing can be sent: correct the rows of the manifest.")
        credentials = self.path(forms.document["out"] if isinstance(forms, Shown) else forms)
        if self.settings.database_url is not None:
            self.database.run(check_bucket, self.bucket)
        may_go = destinations(self.settings)
        sent = upload_files(credentials, self.path(folder), progress=self.progress, may_go=may_go)
        return results.shown_upload(sent, credentials.name)

    @operation
    def sync(
        self,
        *,
        full: bool = False,
        inventory: str | None = None,
        confirmed: bool = False,
    ) -> Shown[Synced]:
        """Observe the sales, their records and what lies in the bucket.

        Args:
            full: read every key, not only those that can have changed.
            inventory: a folder or prefix of S3 Inventories; the newest is taken over instead of a listing.
            confirmed: accept that most of them are gone at once.

        Raises:
            MassDisappearance: most sales, records or objects are gone.
            UnreadableFile: a file of the inventory is missing or not the one that it names.
        """
        from toolkit.audit.inventory import find_inventory
        from toolkit.audit.observe_bucket import sync_bucket

        with self.scratch() as scratch:
            synced = sync_bucket(
                self.database,
                self.bucket,
                full=full,
                inventory=None if inventory is None else find_inventory(self.file_store(inventory), scratch),
                every_key_within=timedelta(days=self.settings.relist_days),
                confirmed=confirmed,
                progress=self.progress,
            )
        return results.shown_sync(synced, inventory=inventory is not None)

    def verify_contents(self, *, seconds: float | None = None) -> Shown[Verified]:
        """Read every file that was not verified in its present version, for at most so many seconds."""
        from toolkit.evidence.contents import verify_contents

        return results.shown_contents(
            verify_contents(self.database, self.bucket, seconds=seconds, progress=self.progress)
        )

    @operation
    def audit(
        self,
        as_of: Moment = None,
        *,
        sync: bool = True,
        verify: bool = True,
        confirmed: bool = False,
        out: str | None = None,
        engine: str = "duckdb",
    ) -> AuditResult:
        """Judge every sale, and return the audit, which is a folder of Parquet.

        One of now looks at sales and bucket first, and seals the custody log; one of the past takes what was seen.

        Args:
            as_of: the moment; now by default.
            sync: look first.
            verify: verify the contents of new files first, for ``TOOLKIT_VERIFY_SECONDS``.
            confirmed: accept that most sales, records or objects are gone at once.
            out: where the folder goes: a folder or ``s3://bucket/prefix``; ``TOOLKIT_AUDITS`` by default.
            engine: ``duckdb`` in this process, or ``spark`` on the cluster of ``TOOLKIT_SPARK_URL``.

        Raises:
            NothingEvaluated: there is no sale at the moment.
            MassDisappearance: most sales, records or objects are gone.
            EngineUnavailable: the engine could not judge.
        """
        from toolkit.audit.run import make_audit
        from toolkit.kit.audits import AuditResult

        if engine not in {"", "duckdb", "spark"}:
            raise InvalidInput("An engine is duckdb or spark, not {!r}.", engine)
        past = None if as_of is None or not str(as_of).strip() else self.moment(as_of)
        plan = self.audit_plan(out, spark=engine == "spark")
        synced = unsealed = None
        if sync and past is None:
            synced = self.sync(confirmed=confirmed).result
            if verify:
                self.verify_contents(seconds=self.settings.verify_seconds)
            unsealed = self.seal_if_possible()
        verified = None if past is not None else sync and verify
        made = make_audit(self.database, plan, as_of=past, verified_first=verified, replica=self.replica)
        if made.facts.of_now:
            made.lay_beside(self.record_report)
        return AuditResult(made, self, synced, unsealed)

    def open_audit(self, place: str | Path) -> AuditResult:
        """Open an audit that was made before.

        Args:
            place: its folder, its address in a bucket, or ``latest`` for the newest one of now.

        Raises:
            UnreadableFile: there is none, or a file of it is not what was written.
            NoAudit: ``latest``, and none has been made yet.
        """
        from toolkit.audit.folder import open_audit
        from toolkit.kit.audits import AuditResult

        if str(place) == "latest":
            found = self.last_audit()
        else:
            around, slash, name = str(place).rstrip("/").rpartition("/")
            found = open_audit(name, self.file_store(around or slash or "."), self.audit_plan().copies)
        return AuditResult(found.verify(), self)

    def changes(self, since: Moment = None, until: Moment = None) -> Shown[FindingChanges]:
        """Compare the findings of two moments.

        Args:
            since: the earlier one; by default a month before, or the first audit where that came later.
            until: the later one; now by default.

        Raises:
            NothingEvaluated: no audit had been made by the later one.
        """
        from toolkit.audit.changes import audits_until, changes_between
        from toolkit.kit.audits import shown_changes

        last, zone = self.moment(until), self.settings.timezone
        month_ago = last - timedelta(days=30)
        audits = self.database.run(audits_until, last)
        first = self.moment(since) if since else max(min(audits, default=month_ago), month_ago)
        found = changes_between(self.database, first, last, zone)
        restored = dict.fromkeys(self.database.run(pending_restore, each) for each in (first, last))
        shown = shown_changes(found)
        return replace(shown, parts=[*shown.parts, *(remark("note", each) for each in restored if each)])

    def file_findings(self) -> Shown[list[dict[str, Any]]]:
        """List what the last audit found about files: one for two sales, too late, replaced, without record.

        Raises:
            NoAudit: no audit has been made yet.
            UnreadableFile: a file of the audit is not what was written.
        """
        return self.open_audit("latest").file_findings()

    def complete(self, sale_id: str) -> Shown[Completion]:
        """Mark a sale as completed, if its files, read to their end, satisfy the rules.

        Raises:
            SaleNotFound: there is no such sale.
        """
        from toolkit.evidence.completion import complete_sale

        return results.shown_completion(complete_sale(self.database, self.bucket, sale_id))

    def sale(self, sale_id: str, *, unmask: str | None = None) -> Shown[SaleCase]:
        """Show one sale: rule, records and files, what is missing, findings of the last audit, time line.

        Args:
            sale_id: its id.
            unmask: the reason for showing the client's whole CPF and the names of files; the custody log then
                tells it with your account.

        Raises:
            SaleNotFound: there is no such sale.
            UnreadableFile: the findings of the last audit are not what was written.
        """
        from toolkit.kit.sales import shown_sale

        case, cpf = self.case_of(sale_id, unmask, "CPF and file names of a sale")
        return shown_sale(case, self.today(), cpf, unmasked=unmask is not None)

    def records(self, sale_id: str) -> Shown[Sequence[EvidenceRecord]]:
        """List the evidence records of a sale with their ids, by what was last seen of the bucket."""
        from toolkit.evidence.records import records_of
        from toolkit.kit.sales import shown_records

        return shown_records(sale_id, records_of(self.database, sale_id))

    @operation
    def dossier(
        self, sale_id: str, out: str | Path = ".", *, with_files: str | None = None, unmask: str | None = None
    ) -> Shown[Path]:
        """Write everything about one sale into a ZIP that opens without the toolkit; ``result`` is its path.

        It holds a PDF in the language of messages, the same as JSON, the proof of each event of the sale in the
        custody log, and the SHA-256 of each file. The custody log keeps the SHA-256 of the archive.

        Args:
            sale_id: its id.
            out: the folder; an older dossier of the sale in it is replaced.
            with_files: the reason for handing out the files of its evidence; the custody log tells each as opened.
            unmask: the reason for showing the client's whole CPF and the names of files, as in ``sale``.

        Raises:
            SaleNotFound: there is no such sale.
            InvalidInput: a reason is blank, or a character of it misleads.
        """
        require("pdf", "Dossiers")
        from toolkit.kit.dossier import write_dossier  # its package is an extra

        path = write_dossier(self, str(sale_id).strip(), self.path(out), with_files=with_files, unmask=unmask)
        return Shown(path, [links("The dossier", [path])])

    @operation
    def draw_review(
        self,
        *,
        per_partner: int = 5,
        of: str = "",
        seed: int = 1,
        second_share: float = 0.1,
    ) -> Shown[Drawn]:
        """Draw files to be looked at by people, from those that the last audit counted.

        Args:
            per_partner: so many of each partner and type, those with a finding about them the likelier.
            of: evidence types, joined by commas; by default all that the scorecard has questions about.
            seed: the same one draws the same files of the same audit.
            second_share: the share from 0 to 1 of them that two people look at.

        Raises:
            NoAudit: no audit has been made yet.
            SettingsError: the scorecard (``TOOLKIT_SCORECARD``) has a mistake; its line and field are named.
            InvalidInput: a type is unknown, or no file is left to be drawn.
            UnreadableFile: a file of the audit is not what was written.
        """
        from toolkit.audit.reviews import draw
        from toolkit.contract.evidence import EvidenceType
        from toolkit.contract.scorecards import read_scorecard
        from toolkit.kit.desk import shown_drawn

        card = read_scorecard(self.settings.scorecard)
        try:
            types = tuple(EvidenceType(name.strip()) for name in of.split(",")) if of.strip() else (*card.types,)
        except ValueError:
            raise InvalidInput("{!r} names a type that is none of {}.", of, ", ".join(EvidenceType)) from None
        audit = self.last_audit().verify()
        by = signed_in_account()
        drawn = draw(
            self.database, audit, card, per_partner, types, seed=seed, second_share=second_share, drawn_by=by
        )
        return shown_drawn(drawn)

    def desk(self, reviewer: str | None = None) -> ReviewDesk:
        """Open the desk of a reviewer, your account by default; it shows itself in JupyterLab."""
        from toolkit.kit.desk import ReviewDesk

        return ReviewDesk(self, reviewer or signed_in_account())

    @property
    def privacy(self) -> Privacy:
        """The rights of persons: what is known of one, holds, requests, erasure."""
        from toolkit.kit.privacy import Privacy

        return Privacy(self)

    def add_waiver(self, **given: str | None) -> Shown[Sequence[Waiver]]:
        """Accept findings for a time.

        Args:
            given: ``sale``, ``partner`` or ``code`` (where several are given, all must fit); ``reason``,
                ``owner``, ``approvedBy``; ``start`` and ``end``, days written 2026-12-15.

        Raises:
            WaiverRefused: a field is missing or wrong; everything that is wrong is named.
        """
        from toolkit.kit.audits import shown_waivers

        today = self.today()
        added = add_waiver(self.database, given, today=today)
        return shown_waivers([added], today)

    @operation
    def waivers(self, *, everything: bool = False) -> Shown[Sequence[Waiver]]:
        """List the waivers that hold or will hold; ``everything``: also those that ended or were revoked."""
        from toolkit.kit.audits import shown_waivers

        found, today = self.database.run(waivers_at), self.today()
        listed = [each for each in found if everything or each.state(today) in {"holds", "later"}]
        return shown_waivers(listed, today)

    def revoke_waiver(self, waiver_id: UUID | str, *, reason: str, by: str) -> datetime:
        """Revoke a waiver: its findings are back at once. Returns when that was.

        Raises:
            WaiverRefused: there is none with this id, or it was revoked before.
        """
        return revoke_waiver(self.database, id_from(waiver_id), reason=reason, revoked_by=by)
