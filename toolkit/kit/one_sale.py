"""The part of the toolkit's object that is about one sale and its evidence records."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from toolkit.extras import require
from toolkit.kit.process import operation, signed_in_account
from toolkit.kit.results import shown_completion
from toolkit.kit.services import Services
from toolkit.kit.shown import Shown, links
from toolkit.kit.spoken import current_language
from toolkit.log.bundle import bundle, opened
from toolkit.log.sealing import prove, with_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from toolkit.audit.sale_case import SaleCase
    from toolkit.contract.evidence import Withdrawal
    from toolkit.evidence.completion import Completion
    from toolkit.evidence.records import EvidenceRecord, Link


class OneSale(Services):
    """The questions about one sale, and the work on it."""

    def complete(self, sale_id: str) -> Shown[Completion]:
        """Mark a sale as completed, if its files, read to their end, satisfy the rules.

        Raises:
            SaleNotFound: there is no such sale.
        """
        from toolkit.evidence.completion import complete_sale

        done = complete_sale(self.database, self.bucket, sale_id, self.clock)
        return shown_completion(done, self.settings.timezone)

    def sale(self, sale_id: str, *, unmask: str | None = None) -> Shown[SaleCase]:
        """Show one sale: rule, records and files, what is missing, findings of the last audit, time line.

        Args:
            sale_id: its id.
            unmask: the reason for showing the client's whole CPF and the names of files; the custody log then
                tells it with your account.

        Raises:
            SaleNotFound: there is no such sale.
        """
        from toolkit.kit.sales import shown_sale

        case, cpf = self._case(sale_id, unmask, "CPF and file names of a sale")
        return shown_sale(case, self.settings.timezone, self.today(), cpf, unmasked=unmask is not None)

    def _case(self, sale_id: str, unmask: str | None, what: str) -> tuple[SaleCase, str | None]:
        """Return a sale and the CPF of its client; where they are shown unmasked, the custody log tells so."""
        from toolkit.audit.sale_case import sale_case

        case = sale_case(self.database, sale_id.strip(), audit=self.last_audit(), clock=self.clock)
        if unmask is not None:
            self.unmask(unmask, what)
        return case, self.cpfs([case.client_id]).get(case.client_id) if case.client_id else None

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
        from toolkit.kit.sales import sale_dossier, texts_of
        from toolkit.reports.dossier import write_dossier

        require("pdf", "Dossiers")
        case, cpf = self._case(sale_id, unmask, "CPF and file names of a sale, in a dossier")
        zone, as_of = self.settings.timezone, self.clock()
        with self.scratch() as scratch:
            files = {} if with_files is None else dict(self.files_of(case.records, with_files, scratch))
            dossier = sale_dossier(case, files, zone, as_of, cpf, unmasked=unmask is not None)
            shown = {
                *texts_of(dossier.document),
                *(each.object_key for each in case.records if unmask is not None),
            }
            dossier = replace(dossier, files={**dossier.files, **dict(self._proofs(case, shown, scratch))})
            path, digest = write_dossier(dossier, self.path(out), current_language(), zone)
        self.record_report({"dossier.zip": digest})
        return Shown(path, [links("The dossier", [path])], files=[path])

    def _proofs(self, case: SaleCase, shown: set[str], folder: Path) -> Iterator[tuple[str, Path]]:
        """Write the proof that the custody log has it for each event of the sale, as far as it is sealed.

        Fields whose texts are ``shown`` are opened.
        """
        self.seal_if_possible()
        with self.database.transaction() as connection:
            told = {event.id: with_key(connection, event) for event, _ in case.timeline}
            proven = [(event, prove(connection, event.id)) for event in told.values()]
        for event, proof in proven:
            if proof is None:
                continue
            for name, content in {**bundle(*proof), **opened(proof[0], event, self.log_keys, shown)}.items():
                path = folder / f"{event.id}-{name}"
                path.write_bytes(content)
                yield f"proofs/{event.id}/{name}", path

    def files_of(
        self, records: Iterable[EvidenceRecord], reason: str, folder: Path, *, by: str | None = None
    ) -> Iterator[tuple[UUID, Path]]:
        """Bring files into a folder, named by their records; the custody log tells of each first."""
        for record in records:
            found = self.bucket.head(record.object_key)
            if found is None:
                continue
            self.link(record.id, reason=reason, by=by, seconds=1)
            suffix = Path(record.object_key).suffix.lower()
            path = folder / f"{record.id}{suffix if suffix[1:].isalnum() else ''}"
            with self.bucket.download(record.object_key, etag=found.etag) as (chunks, _), path.open("wb") as file:
                file.writelines(chunks)
            yield record.id, path

    def records(self, sale_id: str) -> Shown[Sequence[EvidenceRecord]]:
        """List the evidence records of a sale with their ids, by what was last seen of the bucket."""
        from toolkit.evidence.records import records_of
        from toolkit.kit.sales import shown_records

        found = records_of(self.database, sale_id, self.clock)
        return shown_records(sale_id, found, self.settings.timezone)

    def withdraw(self, evidence_id: UUID | str, *, reason: str, by: str, approved_by: str) -> Withdrawal:
        """Take an evidence record out of the count, once and for all; the file stays in the bucket.

        Raises:
            EvidenceNotFound: no record has this id.
            WithdrawalRefused: the approver is the same person, a text is missing, or it was withdrawn before.
        """
        from toolkit.evidence.records import withdraw

        people = {"withdrawn_by": by, "approved_by": approved_by, "account": signed_in_account()}
        return withdraw(self.database, UUID(str(evidence_id)), reason=reason, clock=self.clock, **people)

    def link(self, evidence_id: UUID | str, *, reason: str, by: str | None = None, seconds: int = 300) -> Link:
        """Make a link that opens one file for some seconds; the custody log tells who made it and why.

        Raises:
            EvidenceNotFound: no record has this id, or there is no file.
        """
        from toolkit.evidence.records import open_evidence

        account = signed_in_account()
        asked = {"reason": reason, "opened_by": by or account, "account": account}
        record = UUID(str(evidence_id))
        return open_evidence(self.database, self.bucket, record, seconds=seconds, clock=self.clock, **asked)
