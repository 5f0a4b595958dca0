"""Write the history of jobs as one page: every run with its outcome, duration and counts."""

import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

from toolkit.language import Language
from toolkit.reports.web_page import template

_TREND: Final = 60
"""Runs of each job that its chart shows."""
_WIDTH: Final = 600
_HEIGHT: Final = 60


def write_history_page(path: Path, runs: Sequence[Any], now: datetime, zone: ZoneInfo, language: Language) -> None:
    """Write the page; ``runs`` are the rows of the history, the newest first. It holds no file names."""
    jobs = sorted({run.job for run in runs})
    page = template("job_history.html.j2", language.code).render(
        language=language.code,
        runs=[_row(run, zone, language) for run in runs],
        trends=[(job, _curve([run for run in runs if run.job == job], language)) for job in jobs],
        now=language.moment(now, zone),
        width=_WIDTH,
        height=_HEIGHT,
    )
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text(page, encoding="utf-8")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _row(run: Any, zone: ZoneInfo, language: Language) -> dict[str, Any]:
    seconds = duration(run)
    return {
        "job": run.job,
        "slot": language.moment(run.slot, zone),
        "status": run.status,
        "failure": run.failure or "",
        "seconds": "" if seconds is None else language.number(round(seconds)),
        "counts": [
            (
                step,
                ", ".join(
                    f"{language.number(number)} {name}" for name, number in counts.items() if "." not in name
                ),
            )
            for step, counts in run.counts.items()
        ],
        "who": " @ ".join(filter(None, (run.started_by, run.host))),
        "files": len(run.files),
        "purged": run.purged_at is not None,
        "seal": (run.seal or "")[:12],
        "id": str(run.id),
    }


def duration(run: Any) -> float | None:
    """Return the seconds from the first start to the end, ``None`` where it did not end or never began."""
    if run.started_at is None or run.ended_at is None:
        return None
    seconds: float = (run.ended_at - run.started_at).total_seconds()
    return seconds


def _curve(runs: Sequence[Any], language: Language) -> dict[str, Any] | None:
    """Return the durations of the last runs that are done, the oldest first, as points of a picture."""
    seconds = [found for run in runs if run.status == "done" and (found := duration(run)) is not None][:_TREND][
        ::-1
    ]
    if not seconds:
        return None
    longest = max(max(seconds), 1.0)
    step = _WIDTH / max(len(seconds) - 1, 1)
    points = [(number * step, _HEIGHT - value / longest * _HEIGHT) for number, value in enumerate(seconds)]
    return {
        "points": " ".join(f"{x:.1f},{y:.1f}" for x, y in points),
        "runs": len(seconds),
        "longest": language.number(round(longest)),
        "median": language.number(round(sorted(seconds)[len(seconds) // 2])),
    }
