"""Write one report of made-up sales; print how long it took, and the most memory that this process ever held."""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pandas as pd
import pyarrow as pa

from tests.benchmarks.bench_report_page import large_result
from tests.benchmarks.commands import peak_mb
from tests.benchmarks.timing import timed
from tests.reported import AS_OF
from toolkit.domain.deadlines import Deadlines
from toolkit.operations.judge.audit import AuditResult
from toolkit.operations.judge.audit.life import KnownLife
from toolkit.operations.judge.audit.present import present_findings
from toolkit.operations.judge.findings.changes import Changes
from toolkit.operations.judge.findings.living import living
from toolkit.reports import write_report


def main(sales: int, formats: str) -> None:
    """Write the report of so many open sales."""
    result = _with_findings(large_result(sales))
    with tempfile.TemporaryDirectory() as folder:
        made = timed(lambda: write_report(result, Path(folder), formats.split(",")))
    told = {"seconds": made.seconds, "cpu": made.cpu, "findings": len(result.life.findings)}
    print(json.dumps(told | {"peakMegabytes": peak_mb()}))


def _with_findings(result: AuditResult) -> AuditResult:
    """The result with a finding for each thing that is wrong: half of them new, half of them overdue."""
    nobody = pd.DataFrame(columns=["id"])
    deadlines = Deadlines(ZoneInfo("America/Sao_Paulo"))
    findings = living(present_findings(result.rows), nobody, [], [], AS_OF, deadlines)
    ids, none = pa.array(findings["id"], pa.large_string()), pa.array([], pa.large_string())
    half = len(ids) // 2
    start, still = AS_OF - timedelta(days=1), ids[half:]
    changes = Changes(start, AS_OF, ids[:half], none, none, none, len(still), lambda: still)
    findings = findings.assign(overdue=findings.index >= half)
    life = result.life
    return replace(result, life=KnownLife(findings, life.trends, changes, life.waivers, life.ending))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
