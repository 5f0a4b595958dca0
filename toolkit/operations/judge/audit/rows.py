"""The judged sales as rows for people."""

from datetime import datetime

import pandas as pd

from toolkit.domain.findings import Problem, Status
from toolkit.domain.masking import mask_cpf
from toolkit.operations.judge.audit.result import FEW, ROW_COLUMNS


def told_rows(found: pd.DataFrame, moment: datetime, show_cpf: bool) -> pd.DataFrame:
    """Return the sales by the contract's names: the gravest and oldest first, the compliant ones last.

    CPFs are masked unless ``show_cpf``.
    """
    found["age_days"] = (moment - found["created_at"]).dt.days.clip(lower=0)
    if not show_cpf:
        found["cpf"] = found["cpf"].map(mask_cpf, na_action="ignore")
    found["compliant"] = found["status"] == Status.COMPLIANT
    found["mild"] = ~found["problems"].str.startswith(Problem.COMPLETED_WITHOUT_EVIDENCE)
    found = found.sort_values(["compliant", "mild", "created_at", "sale_id"], ignore_index=True)
    found = found.rename(columns={ours: name for name, ours in ROW_COLUMNS.items()})[list(ROW_COLUMNS)]
    return found.astype(dict.fromkeys(FEW, "category"))
