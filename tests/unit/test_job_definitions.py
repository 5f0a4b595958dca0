"""A jobs.toml is read strictly."""

from __future__ import annotations

import tomllib
from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest

from toolkit.domain.jobs.definitions import Job, read_jobs
from toolkit.errors import SettingsError

GOOD = """
[jobs.nightly]
schedule = "0 2 * * *"
late = "90m"
notify.findings = 10

[[jobs.nightly.steps]]
name = "sync"
command = "bucket sync"

[[jobs.nightly.steps]]
name = "report"
notebook = "03_missing_evidence_report"
parameters = { as_of = "{yesterday}" }
"""


def read(text: str) -> dict[str, Job]:
    return read_jobs(tomllib.loads(text), ZoneInfo("America/Sao_Paulo"))


def test_a_job_has_its_steps_in_their_order_and_defaults_for_the_rest() -> None:
    job = read(GOOD)["nightly"]
    assert [(step.name, step.target) for step in job.steps] == [
        ("sync", "toolkit bucket sync"),
        ("report", "03_missing_evidence_report"),
    ]
    assert (job.late, job.timeout, job.retries, job.findings_above) == (
        timedelta(minutes=90),
        timedelta(hours=6),
        2,
        10,
    )
    assert [job.pause(tries).total_seconds() for tries in (1, 2, 3, 9)] == [30, 60, 120, 900]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("schedule =", "schedul =", "job nightly: schedule is missing"),
        ('late = "90m"', 'lat = "90m"', "there is no key 'lat'. Did you mean 'late'?"),
        ('late = "90m"', 'late = "soon"', "late must be a length of time such as"),
        ('late = "90m"', "late = 90", "late must be a text"),
        ('late = "90m"', "retries = -1", "retries must not be below zero"),
        ("notify.findings = 10", "notify.finding = 10", "Did you mean 'findings'"),
        ('"0 2 * * *"', '"0 2 * *"', "is not a schedule"),
        ('name = "report"', 'name = "sync"', "there is a step 'sync' already"),
        ('name = "report"', 'name = "../x"', "a name has up to 40"),
        ("jobs.nightly", 'jobs."../x"', "a name has up to 40"),
        ('command = "bucket sync"', "", "write either notebook or command"),
        ('as_of = "{yesterday}"', 'api_key = "x"', "'api_key' looks like a secret"),
        ('as_of = "{yesterday}"', 'out = ["postgresql://ana:geheim@db/x"]', "'out' looks like a secret"),
    ],
)
def test_a_mistake_is_named_with_its_place(old: str, new: str, told: str) -> None:
    assert old in GOOD
    with pytest.raises(SettingsError) as raised:
        read(GOOD.replace(old, new))
    assert told in str(raised.value)
    assert "geheim" not in str(raised.value)


def test_a_file_without_jobs_is_no_jobs_file() -> None:
    with pytest.raises(SettingsError, match="names no job"):
        read("")
