"""Name the columns of a sales file, and write its rejected rows back."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from toolkit.language import Language
from toolkit.operations.register.bulk_load.headings import OWN
from toolkit.operations.register.bulk_load.rejects import Outputs
from toolkit.operations.register.bulk_load.results import Tally
from toolkit.operations.spreadsheets import Chunk, Table
from toolkit.operations.spreadsheets.named_columns import NamedColumns, RejectedRow

_PORTUGUESE: Final = {
    "saleId": ("ID da venda", "código da venda", "número da venda", "nº da venda", "venda"),
    "clientId": ("ID do cliente", "código do cliente"),
    "utilityGroup": ("grupo tarifário", "grupo"),
    "isClientFinancialResponsible": (
        "cliente é o responsável financeiro",
        "cliente responsável financeiro",
        "contratante paga",
    ),
    "createdAt": ("data da venda", "data de criação", "criada em", "criado em"),
    "partner": ("parceiro",),
    "completedAt": ("data de conclusão", "concluída em", "finalizada em"),
}
"""The usual headings beside the contract's, in any case, with or without accents and punctuation."""

COLUMNS: Final = NamedColumns(
    "A sales file",
    ("saleId", "clientId", "utilityGroup", "isClientFinancialResponsible", "createdAt"),
    ("partner", "completedAt"),
    _PORTUGUESE,
)


def hand_back(
    table: Table,
    columns: dict[str, str],
    rejected: Sequence[RejectedRow],
    out: Path,
    name: str,
    language: Language,
) -> tuple[Path, ...]:
    """Write the rejected rows for people to correct, as those of clients."""
    headings = [heading for heading in table.rows.column_names if heading not in OWN]
    lines = np.array([each.line for each in rejected])
    rows = table.rows.select(headings).take(pa.array(np.searchsorted(table.lines, lines)))
    chunk = Chunk([column.combine_chunks() for column in rows.columns], lines, 0)
    reasons = ["; ".join(f"{item.field}: {item.message}" for item in each.invalid) for each in rejected]
    wrong = {
        headings.index(columns[field]): np.array(
            [field in {item.field for item in each.invalid} for each in rejected]
        )
        for field in columns
    }
    tally = Tally(len(table.rows) - len(rejected), len(rejected))
    tally.reasons.update(f"{item.field}: {item.message}" for each in rejected for item in each.invalid)
    with Outputs(out, name, table.layout.delimiter, headings, language) as outputs:
        outputs.reject(chunk, reasons, wrong)
        outputs.complete(tally)
        return outputs.publish()[0]
