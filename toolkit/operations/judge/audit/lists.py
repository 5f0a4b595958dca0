"""Read the lists behind the numbers of an audit, those of all partners."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Final, Self

import pandas as pd
from ibis import Table

from toolkit.domain.findings import Problem, Status
from toolkit.domain.masking import mask_cpf
from toolkit.operations.judge.audit.census import by_partner, to_act_on
from toolkit.operations.judge.audit.details import completed_at, faults_at, withdrawals_at
from toolkit.operations.judge.audit.expression import COVERAGES
from toolkit.operations.judge.audit.judgement import Judged
from toolkit.operations.judge.audit.sale_evidence import SaleEvidence, evidence_at
from toolkit.storage.database import Database
from toolkit.storage.reader import Place, Reader

ROW_COLUMNS: Final = {
    "saleId": "sale_id",
    "utilityGroup": "utility_group",
    "status": "status",
    "missing": "missing",
    "reasons": "reasons",
    "problems": "problems",
    "counted": "counted",
    "isClientFinancialResponsible": "is_client_financial_responsible",
    "partner": "partner",
    "clientId": "client_id",
    "cpf": "cpf",
    "createdAt": "created_at",
    "ageDays": "age_days",
    "completedAt": "completed_at",
    "oldestRequest": "oldest_request",
    "unexamined": "unexamined",
    **{str(coverage): column for coverage, column in COVERAGES.items()},
}
"""The columns of ``Lists.sales`` under the contract's names, and what the expression calls them."""

FEW: Final = ("utilityGroup", "status", "missing", "reasons", "problems", "counted", "partner")
"""The columns with few distinct values: each is stored once, as a category, for there may be millions of sales."""


@dataclass(frozen=True, eq=False)
class Lists(ABC):
    """The lists behind the numbers, as of the moment of the audit; each is read once, when it is asked for."""

    judged: Judged
    place: Place
    moment: datetime
    with_files: Collection[str] = ()
    """The sales of which there are findings about files."""
    cpf_shown: bool = False

    @cached_property
    def sales(self) -> pd.DataFrame:
        """The sales behind the numbers, see ``to_act_on``, in ``ROW_COLUMNS``.

        The gravest and oldest come first, the compliant ones last. CPFs are masked unless ``cpf_shown``.
        """
        found = self._to_act_on()
        found["age_days"] = (self.moment - found["created_at"]).dt.days.clip(lower=0)
        if not self.cpf_shown:
            found["cpf"] = found["cpf"].map(mask_cpf, na_action="ignore")
        found["compliant"] = found["status"] == Status.COMPLIANT
        found["mild"] = ~found["problems"].str.startswith(Problem.COMPLETED_WITHOUT_EVIDENCE)
        found = found.sort_values(["compliant", "mild", "created_at", "sale_id"], ignore_index=True)
        found = found.rename(columns={ours: name for name, ours in ROW_COLUMNS.items()})[list(ROW_COLUMNS)]
        return found.astype(dict.fromkeys(FEW, "category"))

    @cached_property
    def completions(self) -> pd.DataFrame:
        """One row a partner: ``partner``, ``completed`` sales, and the ``median_days`` until completion."""
        return self._ask(lambda judged: by_partner(judged.sales))

    @cached_property
    def faults(self) -> pd.DataFrame:
        """The unusable files; columns as in ``toolkit.operations.judge.audit.details.faults_at``."""
        return self._seen(faults_at)

    @cached_property
    def withdrawals(self) -> pd.DataFrame:
        """The withdrawn records with reason and people; columns as in ``details.withdrawals_at``."""
        return self._seen(withdrawals_at)

    @cached_property
    def completed(self) -> pd.DataFrame:
        """The sales that were completed lately, see ``details.completed_at``."""
        return self._seen(completed_at)

    @abstractmethod
    def evidence(self, sale_ids: Sequence[str]) -> Iterator[SaleEvidence]:
        """Yield the records of each of these sales with their files, and its time line, in their order."""

    def with_sales(self) -> Self:
        """Return the same lists, those of the judged sales read now: the judged sales are gone later."""
        _ = self.sales, self.completions
        return self

    def _seen(self, read: Callable[[Reader, datetime], pd.DataFrame]) -> pd.DataFrame:
        with self.place.at(self.moment) as connection:
            return read(connection, self.moment)

    def _ask(self, question: Callable[[Judged], Table]) -> pd.DataFrame:
        return self.judged.read(question(self.judged))

    def _to_act_on(self) -> pd.DataFrame:
        return self._ask(lambda judged: to_act_on(judged.sales, judged.clients, self.with_files))


@dataclass(frozen=True, eq=False)
class DatabaseLists(Lists):
    """The lists as the database holds them."""

    place: Database

    def evidence(self, sale_ids: Sequence[str]) -> Iterator[SaleEvidence]:
        """Yield the evidence of these sales, some thousand of which are read at once."""
        return evidence_at(self.place, self.moment, sale_ids)
