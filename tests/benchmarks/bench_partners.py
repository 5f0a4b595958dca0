"""Mails to partners about their findings: seconds and memory of the whole command, and the gate of one sale."""

import os
import time
from statistics import median

import sqlalchemy as sa
from aiosmtpd.controller import Controller
from aiosmtpd.handlers import Sink

from tests.benchmarks.made_sales import NOW, fill, lose_recordings, settle
from tests.benchmarks.measuring import line, own_database, timed, toolkit
from tests.support.audits import made_audit
from tests.support.uploaded_sales import rows
from tests.support.waiting import free_port
from toolkit.contract.people import PartnerAccess, UnassignedSales
from toolkit.evidence.gate import sale_gate
from toolkit.kit.connection import Kit

_GATES = 200
_SALES = 100_000
_PARTNERS = 200


def main(scale):
    """Print what the command took."""
    with own_database() as (database, home):
        partners = max(2, round(_PARTNERS * scale))
        fill(database, max(100, round(_SALES * scale)), partners)
        lose_recordings(database)
        made_audit(database.at(lambda: NOW), home)
        settle(database)
        addresses = "".join(f'[partner."partner {i}"]\nmail = ["p{i}@example.com"]\n' for i in range(partners))
        (home / "partners.toml").write_text(addresses)
        server = Controller(Sink(), hostname="127.0.0.1", port=free_port())
        server.start()
        given = {"SMTP_HOST": "127.0.0.1", "SMTP_PORT": str(server.port), "SMTP_SECURITY": "none"}
        given |= {"NOTICE_FROM": "toolkit@example.com", "NOTICE_TO": "office@example.com"}
        given |= {"HOME": str(home), "PARTNERS": str(home / "partners.toml")}
        environ = {**os.environ, **{f"TOOLKIT_{name}": given[name] for name in given}}
        run = timed(lambda: toolkit(["partner", "notify"], environ))
        server.stop()
        [(told,)] = rows(database, "SELECT count(*) FROM audit.told_findings")
        goals = f"{partners} mails, {run.answer:.0f} MB (goals {60 * scale:g} s and 300 MB)"
        line(f"partner notify, {told:,} findings", run.seconds, told, goals)
        _ask_gates(home, partners)


def _ask_gates(home, partners):
    """Print the time that the database takes for one gate, the median and the slowest."""
    environ = {"TOOLKIT_HOME": str(home)}
    with Kit(environ) as kit:
        spent = [0.0]
        engine = kit.database.engine
        sa.event.listen(
            engine, "before_cursor_execute", lambda *_: spent.append(spent.pop() - time.perf_counter())
        )
        sa.event.listen(engine, "after_cursor_execute", lambda *_: spent.append(spent.pop() + time.perf_counter()))
        for number in range(_GATES):
            access = PartnerAccess("bench", f"partner {number % partners}", UnassignedSales.NONE, 1)
            sale_gate(kit.database, kit.bucket, f"S-{number or partners}", access)
            spent.append(0.0)
    line(
        "completion gate, at the database",
        sum(spent),
        _GATES,
        f"{median(spent[:-1]) * 1000:.1f} ms each (goal 20 ms)",
    )
