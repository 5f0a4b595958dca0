"""Loads and audits that are killed at chance moments: what is run again ends as if nothing had been killed."""

import os
import subprocess
import sys
import time
from collections import Counter

import sqlalchemy as sa

from tests.benchmarks.measuring import own_home
from tests.support.client_rows import client, write_csv
from tests.support.process_pool import start_command
from toolkit import embedded
from toolkit.audit.folder import open_audit
from toolkit.database.connection import Database

ROWS = 20_000
LONGEST = 5.0
"""Seconds after which a command that still runs is killed at the latest."""
SALES = "".join(f"V-{number},,A,true,2026-10-01T12:00:00-03:00\n" for number in range(500))
TOOLKIT = (sys.executable, "-m", "toolkit", "-q")


def run(chance, until):
    """Kill a load, or the audit after it, and run the same again."""
    counts = Counter()
    with own_home() as home:
        environ = {**os.environ, "TOOLKIT_HOME": str(home)}
        sales = home / "sales.csv"
        sales.write_text(f"saleId,clientId,utilityGroup,isClientFinancialResponsible,createdAt\n{SALES}")
        subprocess.run([*TOOLKIT, "sales", "load", str(sales)], env=environ, check=True, capture_output=True)
        number = 0
        while time.monotonic() < until:
            number += 1
            clients = write_csv(home / f"{number}.csv", (client(number * ROWS + row) for row in range(ROWS)))
            name, words = chance.choice(
                [("load", ("clients", "load", str(clients), "--out", str(home / "out"))), ("audit", ("audit",))]
            )
            process = start_command(environ, "-q", *words)
            process.join(chance.uniform(0, LONGEST))
            killed = process.is_alive()
            process.kill()
            process.join()
            counts[f"{name} {'killed' if killed else 'ended'}"] += 1
            before = _clients(home)
            assert before % ROWS == 0, f"{before} clients: a part of a file is there"
            _check_audits(home)
            if killed:
                again = subprocess.run([*TOOLKIT, *words], env=environ, capture_output=True, text=True)
                assert again.returncode in (0, 3), again.stderr
                _check_audits(home)
    return counts


def _clients(home):
    database = Database(embedded.database_url(home), embedded=True)
    with database.transaction() as connection:
        count = connection.execute(sa.text("SELECT count(*), count(DISTINCT cpf) FROM public.clients")).one()
    database.dispose()
    assert count[0] == count[1], "a client is there twice"
    return int(count[0])


def _check_audits(home):
    """Every folder under a final name is whole."""
    for folder in (home / "audits").glob("2*"):
        open_audit(folder).verify()
