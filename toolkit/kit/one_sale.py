"""The part of the toolkit's object that is about one sale and its evidence records."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from toolkit.errors import NoAudit
from toolkit.kit.process import id_from
from toolkit.kit.results import shown_completion
from toolkit.kit.services import Services
from toolkit.kit.shown import Shown

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

        done = complete_sale(self.database, self.bucket, sale_id)
        return shown_completion(done, self.settings.timezone)

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

        case, cpf = self._case(sale_id, unmask, "CPF and file names of a sale")
        return shown_sale(case, self.settings.timezone, self.today(), cpf, unmasked=unmask is not None)

    def _case(self, sale_id: str, unmask: str | None, what: str) -> tuple[SaleCase, str | None]:
        """Return a sale and the CPF of its client; where they are shown unmasked, the custody log tells so."""
        from toolkit.audit.sale_case import sale_case

        audit = None
        with suppress(NoAudit):
            audit = self.last_audit()
            audit.verify("findings")
        case = sale_case(self.database, str(sale_id).strip(), audit=audit)
        if unmask is not None:
            self.unmask(unmask, what)
        client = str(case.sale.client_id or "")
        return case, self.cpfs([client]).get(client) if client else None

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

        found = records_of(self.database, sale_id)
        return shown_records(sale_id, found, self.settings.timezone)

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
