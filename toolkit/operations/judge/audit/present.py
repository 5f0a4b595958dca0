"""The findings that an audit sees, one row each, made of its judged sales and its findings about files."""

from collections.abc import Iterable, Iterator
from typing import Final

import pandas as pd
import pyarrow as pa

from toolkit.domain.codes import SaleWarning, missing_code
from toolkit.domain.finding_life import file_finding_ids, finding_id
from toolkit.domain.integrity import IntegrityFinding
from toolkit.domain.report_cells import items

COLUMNS: Final = ("id", "code", "sale_id", "partner", "utility_group", "reason")

_OF_SALE: Final = {"saleId": "sale_id", "partner": "partner", "utilityGroup": "utility_group"}

_LISTS: Final = ("problems", "missing", "reasons")

_FEW: Final = {"code": "category", "reason": "category"}
"""The columns with few distinct values: each is stored once, for there may be millions of findings."""

_AT_ONCE: Final = 1 << 16
"""The findings whose ids are made at a time: meanwhile each text is a Python object, which takes much memory."""


def present_findings(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the problems, missing pieces and warnings of sales, given in the columns of ``AuditResult.rows``."""
    told = rows[list(_LISTS)].assign(known=rows["clientId"].notna())
    groups = told.groupby(list(told), sort=False, observed=True).ngroup()
    alike = pd.Series(pd.factorize(groups)[0], told.index)
    combinations = told[~alike.duplicated()].itertuples(index=False, name=None)
    pairs = [(number, *pair) for number, each in enumerate(combinations) for pair in _codes(*each)]
    named = pd.DataFrame(pairs, columns=["alike", *_FEW]).astype({"alike": alike.dtype, **_FEW})
    found = rows[list(_OF_SALE)].rename(columns=_OF_SALE).assign(alike=alike).merge(named, on="alike")
    parts = (found[["code", "sale_id"]].iloc[start : start + _AT_ONCE] for start in range(0, len(found), _AT_ONCE))
    ids = pa.chunked_array(map(_ids, parts), pa.string())
    return found.assign(id=ids.to_pandas()).reindex(columns=list(COLUMNS))


def _ids(found: pd.DataFrame) -> pa.Array:
    return pa.array(
        map(finding_id, found["code"].tolist(), found["sale_id"].tolist()), pa.string(), size=len(found)
    )


def _codes(problems: str, missing: str, reasons: str, has_client: bool) -> Iterator[tuple[str, str | None]]:
    """Yield the codes of a sale of which this is told, each with the reason of a missing piece."""
    yield from ((problem, None) for problem in items(problems))
    yield from zip(map(missing_code, items(missing)), items(reasons), strict=True)
    if not has_client:
        yield str(SaleWarning.WITHOUT_CLIENT), None


def present_file_findings(findings: Iterable[IntegrityFinding], sales: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each sale that a finding about a file concerns.

    ``sales`` has ``sale_id``, ``partner`` and ``utility_group`` of these sales.
    """
    rows = [
        (each, str(finding.problem), sale_id)
        for finding in findings
        for each, sale_id in file_finding_ids(finding)
    ]
    found = pd.DataFrame(rows, columns=["id", "code", "sale_id"], dtype="str")
    found = found.drop_duplicates("id").merge(sales, on="sale_id", how="left")
    return found.reindex(columns=list(COLUMNS))
