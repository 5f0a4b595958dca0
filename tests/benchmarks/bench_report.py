"""The report of an audit folder that exists, without PDF: seconds and memory of the whole command.

Scale 1 is 100,000 sales, nearly all of them open. Goals on 2 quiet cores: 8 seconds and 400 MB.
"""

import os

from tests.benchmarks.made_sales import NOW, fill, lose_recordings
from tests.benchmarks.measuring import line, own_database, toolkit
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
        sealed = toolkit(["log", "seal"], environ)  # as toolkit audit does at its end
        assert sealed.status == 0, sealed.output
        run = toolkit(["report", "--audit", folder, "--format", _FORMATS, "--out", str(home / "report")], environ)
        assert run.status == 0, run.output
        goals = f"{run.peak_mb:.0f} MB (goals {8 * scale:g} s and 400 MB)"
        line(f"report of {sales:,} sales, {_FORMATS}", run.seconds, sales, goals)
