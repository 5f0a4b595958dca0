"""Invent the sample: sales and their evidence, with mistakes; equal arguments give equal values."""

import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, Final
from zoneinfo import ZoneInfo

import pandas as pd
import pyarrow as pa

from toolkit.contract.evidence import KIND_OF, EvidenceType, FileKind, UtilityGroup
from toolkit.contract.rules import EvidenceState
from toolkit.intake.checks import decide
from toolkit.intake.headings import client_headings
from toolkit.intake.sources import source_of
from toolkit.intake.tables import Table
from toolkit.language import language
from toolkit.samples import evidence_files
from toolkit.samples.scenarios import DAYS, FOR_EVER, SCENARIOS, USUAL, Attempt, Scenario

_SPREADSHEETS: Final = Path(__file__).with_name("spreadsheets")
_CLIENT_FILES: Final = ("clients.csv", "clients.xlsx")

_SEED: Final = 356
_SALES: Final = 90

Person = Mapping[str, Any]  # a client, by the columns of the database

DEFAULT_END: Final = datetime(2026, 11, 20, 18, 0, tzinfo=ZoneInfo("America/Sao_Paulo"))
"""The end of the story: its last day, after work."""

_PARTNERS: Final = ("Energia Certa", "Luz do Vale", "Parceiro Norte")
_FILE_NAMES: Final = {
    EvidenceType.POV: "confirmacao-de-voz.mp3",
    EvidenceType.AUT: "autorizacao-do-pagador.mp3",
    EvidenceType.DOC_CONTRATANTE: "identidade.pdf",
    EvidenceType.DOC_RESPONSAVEL_FINANCEIRO: "identidade-do-pagador.pdf",
    EvidenceType.DOC_CONTRATANTE_E_RESPONSAVEL_FINANCEIRO: "identidades.pdf",
    EvidenceType.KYC: "biometria-facial.pdf",
}


@dataclass(frozen=True, slots=True)
class SampleFile:
    """One piece of evidence of a sample sale, with its name and its bytes.

    ``written`` are those that somebody with the keys of the bucket writes.
    """

    sale_id: str
    name: str
    attempt: Attempt
    content: bytes
    written: bytes

    @property
    def place(self) -> Path:
        """The place of the file in the folder of the sample."""
        return Path(PARTNER_FILES if self.attempt.by_partner else "files", self.sale_id, self.name)


@dataclass(frozen=True, slots=True)
class SampleSale:
    """One sale of the sample, with the story that it tells."""

    id: str
    scenario: Scenario
    utility_group: str
    partner: str
    created_at: datetime
    client: Person | None
    files: tuple[SampleFile, ...]

    def partner_on(self, day: int) -> str:
        """Return the partner of the sale on a day."""
        moves = self.scenario.has("other partner", day)
        return _PARTNERS[_PARTNERS.index(self.partner) - 1] if moves else self.partner


@dataclass(frozen=True, slots=True)
class Samples:
    """Everything that the sample holds."""

    end: datetime
    clients: tuple[Person, ...]
    sales: tuple[SampleSale, ...]

    @property
    def files(self) -> list[SampleFile]:
        """All files, those included that are never sent."""
        return [file for sale in self.sales for file in sale.files]

    @property
    def manifest(self) -> list[SampleFile]:
        """The files that an analyst asks for."""
        lapsed = EvidenceState.EXPIRED
        return [each for each in self.files if not each.attempt.by_partner and each.attempt.state is not lapsed]

    def moment(self, day: int) -> datetime:
        """Return the end of the day that is so many days before the end."""
        return self.end - timedelta(days=day)


def make_samples(end: datetime = DEFAULT_END) -> Samples:
    """Read the clients, and invent their sales, each scenario at least once, up to the ``end``."""
    buyers = [person for name in _CLIENT_FILES for person in read_clients(name)[0]]
    return Samples(end, tuple(buyers), tuple(_make_sales(buyers, end)))


def read_clients(name: str) -> tuple[list[Person], list[Person]]:
    """Return the clients of a file of the sample, and those in its rows that are rejected."""
    table = Table(source_of(_SPREADSHEETS / name), client_headings({}))
    right, wrong = dict[str, Person](), list[Person]()
    for chunk in table.chunks():
        verdict = decide(chunk, table.fields, DEFAULT_END.date())
        for accepted, row in zip(verdict.accepted, pa.table({**verdict.values}).to_pylist(), strict=True):
            if accepted:
                right[row["external_id"]] = row  # one of them stands there twice
            else:
                wrong.append(row)
    return [*right.values()], wrong


def _make_sales(buyers: Sequence[Person], end: datetime) -> Iterable[SampleSale]:
    random = Random(_SEED)  # noqa: S311  # made-up data, not a secret
    common = [random.choice(USUAL) for _ in range(_SALES - len(SCENARIOS))]
    stories = [*SCENARIOS, *(each.earlier(random.randint(0, DAYS.index(each.sold))) for each in common)]
    random.shuffle(stories)
    stories.sort(key=lambda story: -story.sold)
    groups = list(UtilityGroup)
    for number, scenario in enumerate(stories, start=1):
        sale_id = f"V-2026-{number:05d}"
        age = timedelta(days=scenario.sold, minutes=random.randrange(60, 600))
        client = None if scenario.traits.get("no client") == FOR_EVER else random.choice(buyers)
        yield SampleSale(
            id=sale_id,
            scenario=scenario,
            utility_group=groups[number % len(groups)],
            partner=random.choice(_PARTNERS),
            created_at=end - age,
            client=client,
            files=tuple(_make_files(sale_id, scenario, client, number)),
        )


def _make_files(sale_id: str, scenario: Scenario, client: Person | None, number: int) -> Iterable[SampleFile]:
    seen: Counter[EvidenceType] = Counter()
    for attempt in scenario.attempts:
        seen[attempt.evidence_type] += 1
        sheet, name = seen[attempt.evidence_type], Path(_FILE_NAMES[attempt.evidence_type])
        if sheet > 1:
            name = name.with_stem(f"{name.stem}-{sheet}")
        content = written = _content(attempt, sale_id, client, str(sheet), number)
        if "written" in attempt.deeds:
            written = _content(attempt, sale_id, client, f"{sheet} (nova)", number)
        yield SampleFile(sale_id, str(name), attempt, content, written)


def _content(attempt: Attempt, sale_id: str, client: Person | None, sheet: str, number: int) -> bytes:
    if attempt.content == "empty":
        return b""
    if KIND_OF[attempt.evidence_type] is FileKind.AUDIO:
        names = evidence_files.RECORDINGS[attempt.evidence_type]
        mark = f"{sale_id} {attempt.evidence_type} {sheet}"
        return evidence_files.recording(attempt.content, names[number % len(names)], mark)
    holder = f"{client['first_name']} {client['last_name']}" if client else "(sem cadastro)"
    lines = [
        f"Venda {sale_id}, folha {sheet}",
        f"Contratante: {holder}",
        "Documento de amostra, sem valor. Pessoa fictícia.",
    ]
    return evidence_files.document(attempt.content, language("pt-BR").text(attempt.evidence_type.text), lines)


PARTNER_FILES: Final = Path("partner", "files")
"""Where, in the folder, the files are that a partner's own software sends."""

_MEDIA_TYPE: Final = {FileKind.PDF: "application/pdf", FileKind.AUDIO: "audio/mpeg"}


def write_samples(samples: Samples, out: Path) -> None:
    """Write the folder; files of an earlier writing are replaced, others are left alone."""
    out.mkdir(parents=True, exist_ok=True)
    for name in _CLIENT_FILES:
        shutil.copyfile(_SPREADSHEETS / name, out / name)
    write_sales(samples.sales, out / "sales.csv", {})
    _write_csv(out / "manifest.csv", [manifest_row(file) for file in samples.manifest])
    for file in samples.files:
        attempt = file.attempt
        if attempt.has_record and (attempt.by_partner or attempt.state is EvidenceState.COUNTED):
            path = out / file.place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(file.content)


def write_sales(
    sales: Iterable[SampleSale], path: Path, client_ids: Mapping[str, object], *, day: int = 0
) -> None:
    """Write ``sales.csv`` as it is so many days before the end of the story.

    ``client_ids`` maps a client's ``externalId`` to the id from its registration.
    """
    _write_csv(path, [_row(sale, client_ids, day) for sale in sales if sale.scenario.sold >= day])


def _row(sale: SampleSale, client_ids: Mapping[str, object], day: int) -> dict[str, object]:
    story = sale.scenario
    client = None if story.has("no client", day) else sale.client
    completed_at = ""
    if story.marked is not None and story.marked >= day:
        completed_at = (sale.created_at + timedelta(days=story.sold - story.marked)).isoformat()
    return {
        "saleId": sale.id,
        "clientId": client_ids.get(client["external_id"], "") if client else "",
        "utilityGroup": "E" if story.has("group E", day) else sale.utility_group,
        "isClientFinancialResponsible": "false" if story.has("other payer", day) else "true",
        "createdAt": sale.created_at.isoformat(),
        "partner": sale.partner_on(day),
        "completedAt": completed_at,
    }


def manifest_row(file: SampleFile) -> dict[str, str]:
    """Return the row that requests this file's upload, under the names of the contract."""
    attempt = file.attempt
    media_type = _MEDIA_TYPE[KIND_OF[attempt.evidence_type]]
    return {
        "saleId": file.sale_id,
        "fileName": file.name,
        "fileFormat": media_type,
        "type": media_type,
        "evidenceType": str(attempt.evidence_type),
    }


def _write_csv(path: Path, rows: Sequence[object]) -> None:
    pd.DataFrame(rows).to_csv(path, index=False, lineterminator="\r\n")
