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


PARTNER_FILES: Final = Path("partner", "files")
"""Where, in the folder, the files are that a partner's own software sends."""

_MEDIA_TYPE: Final = {FileKind.PDF: "application/pdf", FileKind.AUDIO: "audio/mpeg"}


@dataclass(frozen=True, slots=True)
class SampleSale:
    """One sale of the sample, with the story that it tells."""

    number: int
    scenario: Scenario
    partner: str
    created_at: datetime
    client: Person | None

    @property
    def id(self) -> str:
        """The id of the sale."""
        return f"V-2026-{self.number:05d}"

    def partner_on(self, day: int) -> str:
        """Return the partner of the sale on a day."""
        moves = self.scenario.has("other partner", day)
        return _PARTNERS[_PARTNERS.index(self.partner) - 1] if moves else self.partner

    def row(self, client_ids: Mapping[str, object], day: int) -> dict[str, object]:
        """Return its row in the file of the sales on a day."""
        story, groups = self.scenario, list(UtilityGroup)
        client = None if story.has("no client", day) else self.client
        completed_at = ""
        if story.marked is not None and story.marked >= day:
            completed_at = (self.created_at + timedelta(days=story.sold - story.marked)).isoformat()
        return {
            "saleId": self.id,
            "clientId": client_ids.get(client["external_id"], "") if client else "",
            "utilityGroup": "E" if story.has("group E", day) else groups[self.number % len(groups)],
            "isClientFinancialResponsible": "false" if story.has("other payer", day) else "true",
            "createdAt": self.created_at.isoformat(),
            "partner": self.partner_on(day),
            "completedAt": completed_at,
        }


@dataclass(frozen=True, slots=True)
class SampleFile:
    """One piece of evidence of a sample sale, the first of its type or a later ``sheet``."""

    sale: SampleSale
    attempt: Attempt
    sheet: int

    @property
    def name(self) -> str:
        """The name of the file."""
        name = Path(_FILE_NAMES[self.attempt.evidence_type])
        return str(name.with_stem(f"{name.stem}-{self.sheet}") if self.sheet > 1 else name)

    @property
    def place(self) -> Path:
        """The place of the file in the folder of the sample."""
        return Path(PARTNER_FILES if self.attempt.by_partner else "files", self.sale.id, self.name)

    @property
    def request(self) -> dict[str, str]:
        """The row that requests its upload, under the names of the contract."""
        evidence_type = self.attempt.evidence_type
        media_type = _MEDIA_TYPE[KIND_OF[evidence_type]]
        about = {"saleId": self.sale.id, "fileName": self.name, "fileFormat": media_type}
        return {**about, "type": media_type, "evidenceType": str(evidence_type)}

    def content(self, *, anew: bool = False) -> bytes:
        """Return its bytes; ``anew`` those that somebody with the keys of the bucket writes in their place."""
        kind, evidence_type, sale = self.attempt.content, self.attempt.evidence_type, self.sale
        sheet = f"{self.sheet} (nova)" if anew else str(self.sheet)
        if kind == "empty":
            return b""
        if KIND_OF[evidence_type] is FileKind.AUDIO:
            names = evidence_files.RECORDINGS[evidence_type]
            mark = f"{sale.id} {evidence_type} {sheet}"
            return evidence_files.recording(kind, names[sale.number % len(names)], mark)
        holder = f"{sale.client['first_name']} {sale.client['last_name']}" if sale.client else "(sem cadastro)"
        lines = [
            f"Venda {sale.id}, folha {sheet}",
            f"Contratante: {holder}",
            "Documento de amostra, sem valor. Pessoa fictícia.",
        ]
        return evidence_files.document(kind, language("pt-BR").text(evidence_type.text), lines)


@dataclass(frozen=True, slots=True)
class Samples:
    """Everything that the sample holds."""

    end: datetime
    clients: tuple[Person, ...]
    sales: tuple[SampleSale, ...]

    @property
    def files(self) -> list[SampleFile]:
        """All files, those included that are never sent."""
        found = []
        for sale in self.sales:
            seen = Counter[EvidenceType]()
            for attempt in sale.scenario.attempts:
                seen[attempt.evidence_type] += 1
                found.append(SampleFile(sale, attempt, seen[attempt.evidence_type]))
        return found

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
    for number, scenario in enumerate(stories, start=1):
        created_at = end - timedelta(days=scenario.sold, minutes=random.randrange(60, 600))
        client = None if scenario.traits.get("no client") == FOR_EVER else random.choice(buyers)
        yield SampleSale(number, scenario, random.choice(_PARTNERS), created_at, client)


def write_samples(samples: Samples, out: Path) -> None:
    """Write the folder; files of an earlier writing are replaced, others are left alone."""
    out.mkdir(parents=True, exist_ok=True)
    for name in _CLIENT_FILES:
        shutil.copyfile(_SPREADSHEETS / name, out / name)
    write_sales(samples.sales, out / "sales.csv", {})
    files, lapsed = samples.files, EvidenceState.EXPIRED
    asked = [each for each in files if not each.attempt.by_partner and each.attempt.state is not lapsed]
    _write_csv(out / "manifest.csv", [each.request for each in asked])
    for file in files:
        attempt = file.attempt
        if attempt.has_record and (attempt.by_partner or attempt.state is EvidenceState.COUNTED):
            path = out / file.place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(file.content())


def write_sales(
    sales: Iterable[SampleSale], path: Path, client_ids: Mapping[str, object], *, day: int = 0
) -> None:
    """Write ``sales.csv`` as it is so many days before the end of the story.

    ``client_ids`` maps a client's ``externalId`` to the id from its registration.
    """
    _write_csv(path, [sale.row(client_ids, day) for sale in sales if sale.scenario.sold >= day])


def _write_csv(path: Path, rows: Sequence[object]) -> None:
    pd.DataFrame(rows).to_csv(path, index=False, lineterminator="\r\n")
