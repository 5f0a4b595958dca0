"""A jobs.toml is read strictly; logical dates follow the clock of the zone; examples for schedulers are whole."""

import ast
import re
import shutil
import subprocess
import tomllib
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.readme_commands import check_usage
from toolkit.jobs.definitions import PACKAGED, RELATIVE_DATES, Job, Notify, Schedule, load_jobs, named_values

SAO_PAULO = ZoneInfo("America/Sao_Paulo")
NEW_YORK = ZoneInfo("America/New_York")


def local(zone, expression, first, last):
    start, end = (datetime.fromisoformat(day).replace(tzinfo=zone).astimezone(UTC) for day in (first, last))
    slots = Schedule(expression, zone).between(start, end)
    return [slot.astimezone(zone).strftime("%m-%d %H:%M %z") for slot in slots]


@pytest.mark.parametrize(
    ("zone", "expression", "slots"),
    [
        (SAO_PAULO, "0 2 * * *", ["02-28 02:00 -0300", "03-01 02:00 -0300", "03-02 02:00 -0300"]),
        (NEW_YORK, "30 2 * * *", ["03-07 02:30 -0500", "03-08 03:00 -0400", "03-09 02:30 -0400"]),
        (NEW_YORK, "30 1 * * *", ["10-31 01:30 -0400", "11-01 01:30 -0400", "11-02 01:30 -0500"]),
    ],
    ids=["the clock stays", "put forward: the first time that exists", "put back: once"],
)
def test_a_daily_slot_follows_the_clock_on_the_wall_of_its_zone(zone, expression, slots):
    first = date.fromisoformat(f"2026-{slots[0][:5]}")
    assert local(zone, expression, f"{first}", f"{first + timedelta(days=3)}") == slots


ZONES = st.sampled_from(["America/Sao_Paulo", "America/New_York", "Australia/Lord_Howe", "UTC", "Asia/Kathmandu"])
EXPRESSIONS = st.sampled_from(
    ["0 2 * * *", "30 1 * * *", "*/20 * * * *", "0 3 1 * *", "15 0,12 * * MON", "0 * * * *"]
)
MOMENTS = st.integers(1_420_000_000, 1_800_000_000).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))


@given(zone=ZONES, expression=EXPRESSIONS, now=MOMENTS)
@example(zone="America/New_York", expression="30 1 * * *", now=datetime(2026, 11, 1, 6, 10, tzinfo=UTC))
def test_the_latest_slot_and_the_following_one_stand_on_both_sides_of_now(zone, expression, now):
    schedule = Schedule(expression, ZoneInfo(zone))
    latest, following = schedule.latest(now), schedule.following(now)
    assert latest <= now < following
    assert list(schedule.between(latest, now)) == []
    assert schedule.holds(latest)
    assert not schedule.holds(latest + timedelta(seconds=30))


def test_dates_are_counted_from_the_logical_date_in_its_zone():
    late_evening = datetime(2026, 3, 1, 2, 30, tzinfo=UTC)  # 28 February in São Paulo
    names = named_values(late_evening, SAO_PAULO, Path("x"))
    assert names == {
        "today": "2026-02-28",
        "yesterday": "2026-02-27",
        "month-start": "2026-02-01",
        "last-month-start": "2026-01-01",
        "last-month-end": "2026-01-31",
        "logical-date": "2026-02-28T23:30:00-03:00",
        "out": "x",
    }
    assert named_values(late_evening, ZoneInfo("UTC"), Path("x"))["today"] == "2026-03-01"


GOOD = """
[jobs.nightly]
schedule = "0 2 * * *"
grace = "90m"
notify.findings = 10
steps = [
    { name = "sync", command = "bucket sync" },
    { name = "report", command = "run 03_missing_evidence_report -p as_of {yesterday}" },
]
"""


def test_a_job_has_its_steps_in_their_order_and_defaults_for_the_rest(tmp_path):
    (tmp_path / "jobs.toml").write_text(GOOD)
    job = load_jobs(tmp_path / "jobs.toml", SAO_PAULO)["nightly"]
    assert [step.name for step in job.steps] == ["sync", "report"]
    limits = (job.name, job.grace, job.timeout, job.notify.findings)
    assert limits == ("nightly", timedelta(minutes=90), timedelta(hours=6), 10)


PAGE = PACKAGED.with_name("README.md").read_text(encoding="utf-8")


def example(language):
    [found] = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return str(found)


def check_command(text):
    """The command and its options exist, and the job that it names."""
    line = re.sub(r"\{\{.*?\}\}", "2026-11-20T02:00", text[text.index("toolkit job ") :])
    command, words = check_usage(line)
    assert command.make_context(command.name, words).params.get("name") in {None, "nightly", "monthly"}


def test_the_crontab_starts_jobs_when_they_are_due_and_again():
    jobs = load_jobs(PACKAGED, SAO_PAULO)
    for line in example("crontab").splitlines():
        fields = line.split(None, 5)
        check_command(fields[5])
        if "job run" in line:
            job = jobs[fields[5].partition("job run ")[2].split()[0]]
            due = job.schedule.following(datetime(2026, 2, 27, 12, tzinfo=UTC))
            starts = list(Schedule(" ".join(fields[:5]), SAO_PAULO).between(due - job.grace, due + job.grace))
            assert due in starts
            assert len([start for start in starts if start > due]) >= 2


def test_systemd_takes_the_units(tmp_path):
    service, timer = example("systemd-service"), example("systemd-timer")
    [start] = re.findall(r"^ExecStart=(.*)$", service, re.MULTILINE)
    check_command(start)
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd is not installed")
    program = tmp_path / "toolkit"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (tmp_path / "toolkit-nightly.service").write_text(service.replace(start.split()[0], str(program)))
    (tmp_path / "toolkit-nightly.timer").write_text(timer)
    units = [str(path) for path in sorted(tmp_path.glob("toolkit-*"))]
    verified = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True)
    assert (verified.returncode, verified.stderr) == (0, "")


def test_airflow_and_runners_can_read_theirs():
    tree = ast.parse(example("python"))
    [command] = [each.value for each in ast.walk(tree) if getattr(each, "arg", "") == "bash_command"]
    check_command(ast.literal_eval(command))
    for step in yaml.safe_load(example("yaml"))["jobs"]["run"]["steps"]:
        check_command(step["run"])


def test_the_packaged_jobs_file_explains_every_key_and_date():
    text = PACKAGED.read_text(encoding="utf-8")
    assert set(tomllib.loads(text)["jobs"]) == {"nightly", "monthly"}
    explained = set(re.findall(r"^#   ([a-z.-]+)  ", text, re.MULTILINE))
    keys = {field.alias or "" for name, field in Job.model_fields.items() if name not in {"name", "notify"}}
    assert explained == keys | {f"notify.{field.alias}" for field in Notify.model_fields.values()}
    named = set(re.findall(r"\{([a-z-]+)\}", text.partition("[jobs")[0]))
    assert named == {*RELATIVE_DATES, "logical-date", "out"}
