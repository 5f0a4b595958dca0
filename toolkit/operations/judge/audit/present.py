"""The findings that an audit sees, one row each, made of its judged sales and its findings about files."""

from collections.abc import Iterable
from typing import Final

import pandas as pd

from toolkit.domain.codes import SaleWarning, missing_code
from toolkit.domain.finding_life import file_finding_ids, finding_id
from toolkit.domain.integrity import IntegrityFinding
from toolkit.domain.report_cells import SEPARATOR

COLUMNS: Final = ("id", "code", "sale_id", "partner", "utility_group", "reason")

_OF_SALE: Final = {"saleId": "sale_id", "utilityGroup": "utility_group"}


def present_findings(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the problems, missing pieces and warnings of sales, given in the columns of ``AuditResult.rows``."""
    sales = rows.rename(columns=_OF_SALE)
    problems = _exploded(sales, "problems").rename(columns={"problems": "code"})
    pieces = _exploded(sales, "missing", "reasons").rename(columns={"reasons": "reason"})
    pieces["code"] = [missing_code(each) for each in pieces["missing"]]
    clientless = sales[sales["clientId"].isna()].assign(code=str(SaleWarning.WITHOUT_CLIENT))
    found = pd.concat([problems, pieces, clientless], ignore_index=True)
    found["id"] = [
        str(finding_id(code, sale_id)) for code, sale_id in zip(found["code"], found["sale_id"], strict=True)
    ]
    return found.reindex(columns=list(COLUMNS))


def present_file_findings(findings: Iterable[IntegrityFinding], sales: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each sale that a finding about a file concerns.

    ``sales`` has ``sale_id``, ``partner`` and ``utility_group`` of these sales.
    """
    rows = [
        (str(each), str(finding.problem), sale_id)
        for finding in findings
        for each, sale_id in file_finding_ids(finding)
    ]
    found = pd.DataFrame(rows, columns=["id", "code", "sale_id"], dtype=object)
    found = found.drop_duplicates("id").merge(sales, on="sale_id", how="left")
    return found.reindex(columns=list(COLUMNS))


def _exploded(sales: pd.DataFrame, *lists: str) -> pd.DataFrame:
    """Return one row an item of these lists, which are aligned."""
    some = sales.loc[sales[lists[0]] != "", ["sale_id", "partner", "utility_group", *lists]]
    split = some.assign(**{name: some[name].str.split(SEPARATOR, regex=False) for name in lists})
    return split.explode(list(lists), ignore_index=True)
