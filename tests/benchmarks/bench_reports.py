"""Benchmark of reports: the bundle without PDF, a million sales, a workbook, a PDF, the sample's report.

Each report is written by a process of its own, whose seconds and memory are its own. The goals stand beside what
was measured; they hold for ``--scale 1`` on two quiet cores. Every open sale has its findings, half of them new,
half overdue.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.benchmarks.commands import toolkit

_BUNDLE: Final = "html,xlsx,csv,json"


@dataclass(frozen=True)
class _Goal:
    sales: int
    formats: str
    seconds: float
    megabytes: float = 0


_GOALS: Final = (
    _Goal(100_000, _BUNDLE, 20, 600),
    _Goal(100_000, "xlsx", 5, 600),
    _Goal(5_000, "pdf", 6),
    _Goal(1_000_000, _BUNDLE, 200, 1000),
)


def main(scale: float) -> None:
    """Write reports of so many sales times ``scale``, then the sample's report and notebook 03."""
    for goal in _GOALS:
        sales = max(int(goal.sales * scale), 100)
        command = [sys.executable, "-m", "tests.benchmarks.written_report", str(sales), goal.formats]
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        memory = f", {found['peakMegabytes']:,.0f} MB (goal {goal.megabytes:,.0f})" if goal.megabytes else ""
        print(
            f"{goal.formats}: {sales:,} sales, {found['findings']:,} findings: {found['seconds']:.1f} s "
            f"(goal {goal.seconds * scale:g}), {found['cpu']:.1f} s of CPU, "
            f"{sales / found['seconds']:,.0f} sales a second{memory}",
            flush=True,
        )
    _sample()


def _sample() -> None:
    """Write the sample's report by the command and by notebook 03, on embedded services that run already."""
    with tempfile.TemporaryDirectory(prefix="toolkit-bench-", dir="/var/tmp") as folder:  # may be passed through
        Path(folder).chmod(0o755)
        environ = {"TOOLKIT_HOME": f"{folder}/home"}
        toolkit(["demo", "--out", f"{folder}/demo"], environ)
        try:
            report = toolkit(["report", "--out", f"{folder}/report"], environ)
            print(f"report of the sample: {report.seconds:.1f} s (goal 4), status {report.status}")
            place = ["--out", f"{folder}/03.ipynb", "-p", "out", f"{folder}/nb"]
            notebook = toolkit(["run", "03_missing_evidence_report", *place], environ)
            print(f"notebook 03: {notebook.seconds:.1f} s (goal 10), status {notebook.status}", flush=True)
        finally:
            toolkit(["down"], environ)
