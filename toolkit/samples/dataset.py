"""Invent the sample: clients, sales and their evidence, with mistakes. Equal arguments give equal values."""

from __future__ import annotations

import random as random_module
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Final
from zoneinfo import ZoneInfo

from toolkit.domain.evidence import KIND_OF, EvidenceType, FileKind, UtilityGroup
from toolkit.errors import InvalidInput
from toolkit.samples import client_files, evidence_files
from toolkit.samples.people import Person, make_people
from toolkit.samples.scenarios import SCENARIOS, USUAL, Fate, Scenario

DEFAULT_SEED: Final = 7
DEFAULT_CLIENTS: Final = 180
DEFAULT_SALES: Final = 90

_LAST_DAY: Final = datetime(2026, 11, 20, 18, 0, tzinfo=ZoneInfo("America/Sao_Paulo"))
_SPAN: Final = timedelta(days=60)
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
    """One piece of evidence of a sample sale: its name, its fate, and its bytes."""

    sale_id: str
    name: str
    evidence_type: EvidenceType
    fate: Fate
    content: bytes


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


@dataclass(frozen=True, slots=True)
class Samples:
    """Everything that the sample holds; the ``wrong`` clients are those whose rows get a mistake."""

    seed: int
    csv_clients: tuple[Person, ...]
    csv_wrong: tuple[Person, ...]
    xlsx_clients: tuple[Person, ...]
    xlsx_wrong: tuple[Person, ...]
    sales: tuple[SampleSale, ...]


def make_samples(
    *, seed: int = DEFAULT_SEED, clients: int = DEFAULT_CLIENTS, sales: int = DEFAULT_SALES
) -> Samples:
    """Invent ``clients`` valid clients, wrong rows beside them, and ``sales`` sales: each scenario at least once.

    Raises:
        InvalidInput: fewer sales than scenarios, or hardly any clients.
    """
    if sales < len(SCENARIOS):
        raise InvalidInput(f"The sample needs at least {len(SCENARIOS)} sales, one for each case of the rules.")
    if clients < 10:
        raise InvalidInput("The sample needs at least 10 clients.")
    random = random_module.Random(seed)  # noqa: S311  # made-up data, not a secret
    in_xlsx = clients // 4
    csv_clients = make_people(clients - in_xlsx, "EC", random)
    xlsx_clients = make_people(in_xlsx, "LV", random)
    csv_wrong = make_people(max(len(client_files.DEFECTS), clients // 20), "EC-X", random)
    xlsx_wrong = make_people(2, "LV-X", random)
    made_sales = _make_sales(sales, [*csv_clients, *xlsx_clients], random)
    return Samples(
        seed, tuple(csv_clients), tuple(csv_wrong), tuple(xlsx_clients), tuple(xlsx_wrong), tuple(made_sales)
    )


def _make_sales(count: int, buyers: Sequence[Person], random: Random) -> Iterable[SampleSale]:
    stories = [*SCENARIOS, *(random.choice(USUAL) for _ in range(count - len(SCENARIOS)))]
    random.shuffle(stories)
    groups = list(UtilityGroup)
    for number, scenario in enumerate(stories, start=1):
        sale_id = f"V-2026-{number:05d}"
        age = _SPAN * (count - number) / count + timedelta(minutes=random.randrange(600))
        client = random.choice(buyers) if scenario.has_client else None
        yield SampleSale(
            id=sale_id,
            scenario=scenario,
            utility_group=scenario.utility_group or groups[number % len(groups)],
            partner=random.choice(_PARTNERS),
            created_at=(_LAST_DAY - age).replace(microsecond=0),
            client=client,
            files=tuple(_make_files(sale_id, scenario, client, number)),
        )


def _make_files(sale_id: str, scenario: Scenario, client: Person | None, number: int) -> Iterable[SampleFile]:
    seen: dict[EvidenceType, int] = {}
    for attempt in scenario.attempts:
        evidence_type = attempt.evidence_type
        seen[evidence_type] = seen.get(evidence_type, 0) + 1
        stem, dot, ending = _FILE_NAMES[evidence_type].partition(".")
        name = f"{stem}-{seen[evidence_type]}{dot}{ending}" if seen[evidence_type] > 1 else stem + dot + ending
        mark = f"{scenario.recording or sale_id} {evidence_type} {seen[evidence_type]}"
        if attempt.fate is Fate.UNUSABLE:
            content = _mistaken(evidence_type, mark, number)
        elif KIND_OF[evidence_type] is FileKind.AUDIO:
            recordings = evidence_files.RECORDINGS[evidence_type]
            choice = len(mark) if scenario.recording else number
            content = evidence_files.mp3(recordings[choice % len(recordings)], mark)
        else:
            content = _document(sale_id, evidence_type, client, seen[evidence_type])
        yield SampleFile(sale_id, name, evidence_type, attempt.fate, content)


def _mistaken(evidence_type: EvidenceType, mark: str, number: int) -> bytes:
    if KIND_OF[evidence_type] is FileKind.AUDIO:
        return evidence_files.error_page(mark)
    return evidence_files.photo(number % 256)


_DOCUMENT_TITLES: Final = {
    EvidenceType.DOC_CONTRATANTE: "Documento do contratante",
    EvidenceType.DOC_RESPONSAVEL_FINANCEIRO: "Documento do responsável financeiro",
    EvidenceType.DOC_CONTRATANTE_E_RESPONSAVEL_FINANCEIRO: "Documentos do contratante e do responsável financeiro",
    EvidenceType.KYC: "Validação de identidade e biometria facial",
}


def _document(sale_id: str, evidence_type: EvidenceType, client: Person | None, number: int) -> bytes:
    holder = f"{client.first_name} {client.last_name}" if client else "(sem cadastro)"
    return evidence_files.pdf(
        _DOCUMENT_TITLES[evidence_type],
        [
            f"Venda {sale_id}, folha {number}",
            f"Contratante: {holder}",
            "Documento de amostra, sem valor. Pessoa fictícia.",
        ],
    )
