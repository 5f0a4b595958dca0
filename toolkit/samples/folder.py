"""Write the sample as a folder of files.

::

    clients.csv                  clients of one partner: `;`, cp1252, masks, some rows that are wrong
    clients.xlsx                 clients of another one: numbers that lost their zeros
    sales.csv                    the sales; clientId is filled in once the clients are registered
    manifest.csv                 evidence to request and upload; a few of its files are not there yet
    files/<saleId>/<fileName>    those files
    partner/manifest.csv         evidence that a partner's own software sends, without looking at it
    partner/files/...            those files: some are not what they claim to be
    partner/lapsed.csv           evidence that was requested and never sent

Equal arguments give equal bytes.
"""

import csv
import random as random_module
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Final

from toolkit.domain.evidence import KIND_OF, FileKind
from toolkit.domain.rules import EvidenceState
from toolkit.samples import client_files
from toolkit.samples.dataset import SampleFile, Samples, SampleSale

MANIFEST_COLUMNS: Final = ("saleId", "fileName", "fileFormat", "type", "evidenceType")
SALE_COLUMNS: Final = (
    "saleId", "clientId", "utilityGroup", "isClientFinancialResponsible", "createdAt", "partner", "completedAt",
)  # fmt: skip

PARTNER_FILES: Final = Path("partner", "files")
"""Where, in the folder, the files are that a partner's own software sends."""

_MEDIA_TYPE: Final = {FileKind.PDF: "application/pdf", FileKind.AUDIO: "audio/mpeg"}


def write_samples(samples: Samples, out: Path) -> None:
    """Write the folder; files of an earlier writing are replaced, others are left alone."""
    random = random_module.Random(samples.seed)  # noqa: S311  # how a row is written, not a secret
    files = [file for sale in samples.sales for file in sale.files]
    by_partner = [file for file in files if file.attempt.by_partner and file.attempt.has_record]
    lapsed = [file for file in files if file.attempt.state is EvidenceState.EXPIRED]
    requested = [file for file in files if not file.attempt.by_partner and file not in lapsed]
    out.mkdir(parents=True, exist_ok=True)
    (out / PARTNER_FILES).mkdir(parents=True, exist_ok=True)
    client_files.write_csv(out / "clients.csv", samples.csv_clients, samples.csv_wrong, random)
    client_files.write_xlsx(out / "clients.xlsx", samples.xlsx_clients, samples.xlsx_wrong)
    write_sales(samples.sales, out / "sales.csv", {})
    _write_manifest(out / "manifest.csv", requested)
    _write_manifest(out / "partner" / "manifest.csv", by_partner)
    _write_manifest(out / "partner" / "lapsed.csv", lapsed)
    _write_files(out / "files", (file for file in requested if file.attempt.state is EvidenceState.COUNTED))
    _write_files(out / PARTNER_FILES, by_partner)


def write_sales(
    sales: Iterable[SampleSale], path: Path, client_ids: Mapping[str, object], *, day: int = 0
) -> None:
    """Write ``sales.csv`` as it is so many days before the end of the story.

    ``client_ids`` maps a client's ``externalId`` to the id from its registration.
    """
    _write_csv(path, SALE_COLUMNS, [_row(sale, client_ids, day) for sale in sales if sale.scenario.sold >= day])


def _row(sale: SampleSale, client_ids: Mapping[str, object], day: int) -> tuple[object, ...]:
    story = sale.scenario
    client = None if story.has("no client", day) else sale.client
    group = "E" if story.has("group E", day) else sale.utility_group
    completed_at = ""
    if story.marked is not None and story.marked >= day:
        completed_at = (sale.created_at + timedelta(days=story.sold - story.marked)).isoformat()
    return (
        sale.id,
        client_ids.get(client.external_id, "") if client else "",
        group,
        "false" if story.has("other payer", day) else "true",
        sale.created_at.isoformat(),
        sale.partner_on(day),
        completed_at,
    )


def _write_manifest(path: Path, files: Iterable[SampleFile]) -> None:
    _write_csv(path, MANIFEST_COLUMNS, (tuple(manifest_row(file).values()) for file in files))


def manifest_row(file: SampleFile) -> dict[str, str]:
    """Return the row that requests this file's upload, under the names of ``MANIFEST_COLUMNS``."""
    evidence_type = file.attempt.evidence_type
    media_type = _MEDIA_TYPE[KIND_OF[evidence_type]]
    values = (file.sale_id, file.name, media_type, media_type, str(evidence_type))
    return dict(zip(MANIFEST_COLUMNS, values, strict=True))


def _write_files(folder: Path, files: Iterable[SampleFile]) -> None:
    for file in files:
        (folder / file.sale_id).mkdir(parents=True, exist_ok=True)
        (folder / file.sale_id / file.name).write_bytes(file.content)


def _write_csv(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(columns)
        writer.writerows(rows)
