"""Audits of a test's database, the judging alone on an engine, and a server of Spark Connect."""

import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from toolkit.audit.duckdb_session import duckdb_session
from toolkit.audit.engines import DuckdbEngine
from toolkit.audit.judge import GIVEN, judgement
from toolkit.audit.publish import AuditPlan
from toolkit.audit.run import make_audit
from toolkit.bucket.file_store import FolderStore
from toolkit.contract.deadlines import Deadlines
from toolkit.reports.reading import read_audited
from toolkit.settings import Settings

DEADLINES = Deadlines(ZoneInfo("America/Sao_Paulo"))


def plan_in(folder, deadlines=DEADLINES, **settings):
    """The plan of audits below a folder, with settings that are not the default ones."""
    (folder / "audits").mkdir(parents=True, exist_ok=True)
    store = FolderStore(folder / "audits", str(folder / "audits"))
    given = Settings.from_environment({"TOOLKIT_HOME": str(folder), "EVIDENCE_BUCKET": "evidence"})
    return AuditPlan(store, replace(given, **settings), deadlines)


def audited(database, *, as_of=None, deadlines=DEADLINES, partner=None, **settings):
    """The numbers and lists of an audit of now, or of a past moment, of which nothing else is kept."""
    with tempfile.TemporaryDirectory() as folder:
        made = make_audit(database, plan_in(Path(folder), deadlines, **settings), as_of=as_of)
        return read_audited(made if partner is None else made.for_partner(partner))


def made_audit(database, folder, *, as_of=None):
    """An audit whose folder is kept."""
    return make_audit(database, plan_in(folder), as_of=as_of)


def of_partner(database, result, partner):
    """The sales of one partner in the audit of the same moment."""
    facts = result.facts
    later = facts.made_at + timedelta(days=1)
    return audited(database.at(lambda: later), as_of=facts.as_of, partner=partner)


@contextmanager
def on_duckdb(home=None):
    with duckdb_session(home) as session:
        yield DuckdbEngine(session)


def judge_on(engine, inputs, outputs, as_of):
    """Judge the inputs in a folder; the engine writes the outputs itself."""
    for name in GIVEN:
        engine.show(name, [str(inputs / f"{name}.parquet")])
    for name, query in judgement().items():
        engine.write(query, str(outputs / f"{name}.parquet"), as_of)
        engine.show(name, parts_of(outputs, name))


def parts_of(outputs, name):
    """Return the files of an output: one, or those of the folder that Spark writes."""
    place = outputs / f"{name}.parquet"
    return [str(place)] if place.is_file() else sorted(map(str, place.glob("*.parquet")))


REMOTE = "SPARK_REMOTE"
"""The variable, PySpark's own, that names a running server, such as a real Spark, to test and to measure too."""

_START = """
from pysail.spark import SparkConnectServer
server = SparkConnectServer('127.0.0.1', 0)
server.start(background=True)
print(server.listening_address[1], flush=True)
input()
"""


@contextmanager
def sail(environ=None, within=()):
    """The URL of a server, with the environment of this process and ``environ``."""
    pytest.importorskip("pysail.spark")
    command, given, pipe = [*within, sys.executable, "-c", _START], dict(environ or {}), subprocess.PIPE
    with subprocess.Popen(command, env=os.environ | given, stdin=pipe, stdout=pipe) as server:
        try:
            yield f"sc://127.0.0.1:{int(server.stdout.readline())}"
        finally:
            server.kill()
