"""The report of an audit folder that exists, without PDF: seconds and memory of the whole command."""

import os

from tests.benchmarks.made_sales import NOW, fill, lose_recordings
from tests.benchmarks.measuring import line, own_database, timed, toolkit
from tests.support.audits import made_audit

_SALES = 100_000
_FORMATS = "html,xlsx,csv,json"


def main(scale):
    """Print what the report took."""
    with own_database() as (database, home):
        sales = max(100, round(_SALES * scale))
        fill(database, sales)
        lose_recordings(database)
        folder = made_audit(database.at(lambda: NOW), home).folder
        environ = {**os.environ, "TOOLKIT_HOME": str(home)}
        toolkit(["log", "seal"], environ)  # as toolkit audit does at its end
        words = ["report", "--audit", folder, "--format", _FORMATS, "--out", home / "report"]
        run = timed(lambda: toolkit(words, environ))
        goals = f"{run.answer:.0f} MB (goals {8 * scale:g} s and 400 MB)"
        line(f"report of {sales:,} sales, {_FORMATS}", run.seconds, sales, goals)
