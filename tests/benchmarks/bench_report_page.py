"""Benchmark of the page of a report in a browser: until it can be used, its heap, and a search in it.

The floor is a page with as many numbers that draws nothing.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd

from tests.benchmarks.timing import timed
from tests.browser import chromium
from tests.reported import AS_OF, Told, evidence_of, result_of
from toolkit.domain.custody_chain import Event
from toolkit.operations.judge.audit import AuditResult
from toolkit.operations.judge.audit.records import StoredFile
from toolkit.operations.judge.audit.sale_evidence import SaleEvidence
from toolkit.reports import write_report

_SALES = 100_000
_FILES = ("POV DC~", "POV! DC?", "KYC POV", "POV", "", "POV AUT? DCR?", "AUT DR")
_SEARCH = """(text) => {
    const form = document.querySelector("form.filters");
    const started = performance.now();
    form.elements.text.value = text;
    form.dispatchEvent(new Event("input"));
    return performance.now() - started;
}"""


def main(scale: float) -> None:
    """Write pages of 100,000 and 1,000,000 sales times ``scale``, and open them from their files."""
    for sales in (int(_SALES * scale), int(10 * _SALES * scale)):
        with tempfile.TemporaryDirectory() as folder, chromium() as browser:
            result = large_result(sales)
            written = timed(partial(write_report, result, Path(folder), ["html"]))
            [page] = written.answer
            print(f"write {sales:,} sales: {written.seconds:.2f} s, {page.stat().st_size / 1e6:.1f} MB")
            _open(browser, page)


def _open(browser: Any, path: Path) -> None:
    page = browser.new_page()
    started = time.perf_counter()
    page.goto(path.as_uri())
    page.locator(".grid .view .line").first.wait_for()
    usable = time.perf_counter() - started
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    heap = session.send("Runtime.getHeapUsage")["usedSize"] / 1e6
    page.wait_for_timeout(1000)
    searches = [page.evaluate(_SEARCH, text) for text in ("sale-00000777", "parceiro 7", "982", "")]
    print(f"usable {usable:.2f} s, heap {heap:.0f} MB, search {max(searches):.0f} ms at most", flush=True)


def large_result(sales: int) -> AuditResult:
    few = result_of([Told(f"S-{number}", files) for number, files in enumerate(_FILES)])
    random = np.random.default_rng(1)
    rows = few.rows.iloc[random.integers(0, len(few.rows), sales)].reset_index(drop=True)
    age = np.sort(random.integers(0, 120 * 86_400, sales))[::-1]
    digits = random.bytes(16 * sales).hex()
    ids = (digits[at : at + 32] for at in range(0, len(digits), 32))
    created = (pd.Timestamp(AS_OF) - pd.to_timedelta(age, "s")).astype("datetime64[us, UTC]")
    rows = rows.assign(
        saleId=[f"SALE-{number:08}" for number in range(sales)],
        partner=pd.Series([f"Parceiro {number}" for number in range(60)], dtype="category")
        .take(random.integers(0, 60, sales))
        .array,
        clientId=[f"{each[:8]}-{each[8:12]}-{each[12:16]}-{each[16:20]}-{each[20:]}" for each in ids],
        cpf=[f"***.{n // 1000:03}.{n % 1000:03}-**" for n in random.integers(0, 1_000_000, sales)],
        createdAt=created,
        ageDays=age // 86_400,
    )
    lists: Any = few.lists
    return replace(few, lists=replace(lists, sales=rows, evidence=partial(_evidence, random)))


def _evidence(random: np.random.Generator, sale_ids: Sequence[str]) -> Iterator[SaleEvidence]:
    """Three records for each sale, two of them with a file that has a hash of its own, and eight events."""
    made = evidence_of(Told("S", "POV DC AUT?"))
    for _ in sale_ids:
        at = AS_OF - timedelta(seconds=int(random.integers(10**7)))
        records = tuple(
            replace(
                each,
                id=UUID(bytes=random.bytes(16)),
                requested_at=at,
                file=each.file and _file(random, each.file, at),
            )
            for each in made.records
        )
        kinds = [(record, kind) for record in records for kind in ("ASKED", "ISSUED")]
        kinds += [(record, "UPLOADED") for record in records if record.file]
        events = [(Event(number, kind, at, {}), record.id) for number, (record, kind) in enumerate(kinds)]
        yield SaleEvidence(records, tuple(events))


def _file(random: np.random.Generator, file: StoredFile | None, at: datetime) -> StoredFile | None:
    return file and replace(file, size=int(random.integers(10**7)), sha256=random.bytes(32).hex(), seen_at=at)
