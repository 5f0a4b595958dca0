"""The examples for schedulers on the page of jobs: each is parsed, and its commands are those of the toolkit."""

import ast
import re
import shutil
import subprocess
import tomllib
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
import yaml

from tests.support.readme_commands import check_usage
from toolkit.jobs.definitions import PACKAGED, RELATIVE_DATES, Job, Notify, Schedule, load_jobs

PAGE = PACKAGED.with_name("README.md").read_text(encoding="utf-8")
ZONE = ZoneInfo("America/Sao_Paulo")


def example(language):
    [found] = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return str(found)


def check_command(text):
    """The command and its options exist, and the job that it names."""
    line = re.sub(r"\{\{.*?\}\}", "2026-11-20T02:00", text[text.index("toolkit job ") :])
    command, words = check_usage(line)
    assert command.make_context(command.name, words).params.get("name") in {None, "nightly", "monthly"}


def test_the_crontab_starts_jobs_when_they_are_due_and_again():
    jobs = load_jobs(PACKAGED, ZONE)
    for line in example("crontab").splitlines():
        fields = line.split(None, 5)
        check_command(fields[5])
        if "job run" in line:
            job = jobs[fields[5].partition("job run ")[2].split()[0]]
            due = job.schedule.following(datetime(2026, 2, 27, 12, tzinfo=UTC))
            starts = list(Schedule(" ".join(fields[:5]), ZONE).between(due - job.grace, due + job.grace))
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
