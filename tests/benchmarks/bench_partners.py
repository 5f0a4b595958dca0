"""Telling partners of their findings by mail: seconds and memory of the whole command, and the gate of one sale.

Scale 1 is 200 partners with about 100,000 findings, which the line names. Goals: a minute and 300 MB; the gate
that a partner asks before it completes a sale: 20 ms at the database.
"""

import os
import time
from statistics import median

import sqlalchemy as sa
from aiosmtpd.controller import Controller

from tests.benchmarks.made_sales import NOW, fill, lose_recordings, settle
from tests.benchmarks.measuring import line, own_database, toolkit
from tests.support.audits import made_audit
from tests.support.uploaded_sales import rows
from tests.support.waiting import free_port
from toolkit.contract.people import PartnerAccess, UnassignedSales
from toolkit.evidence.gate import sale_gate
from toolkit.kit.connection import Kit

_GATES = 200
_SALES = 100_000
_PARTNERS = 200
_OF_PARTNERS = """
    UPDATE {} SET partner = 'partner ' || (split_part({}, '-', 2)::int % {})
"""


class _Mails:
    count = 0

    async def handle_DATA(self, *_):  # noqa: N802  # aiosmtpd's name
        self.count += 1
        return "250 OK"


def main(scale):
    """Print what the command took."""
    with own_database() as (database, home):
        partners = max(2, round(_PARTNERS * scale))
        fill(database, max(100, round(_SALES * scale)))
        lose_recordings(database)
        with database.transaction() as connection:
            connection.execute(sa.text("SET LOCAL session_replication_role = replica"))
            for table, column in (("sales", "id"), ("audit.sale_observations", "sale_id")):
                connection.execute(sa.text(_OF_PARTNERS.format(table, column, partners)))
        made_audit(database.at(lambda: NOW), home)
        settle(database)
        addresses = "".join(f'[partner."partner {i}"]\nmail = ["p{i}@example.com"]\n' for i in range(partners))
        (home / "partners.toml").write_text(addresses)
        mails = _Mails()
        server = Controller(mails, hostname="127.0.0.1", port=free_port())
        server.start()
        smtp = {"SMTP_HOST": "127.0.0.1", "SMTP_PORT": str(server.port), "SMTP_SECURITY": "none"}
        smtp |= {"NOTICE_FROM": "toolkit@example.com", "NOTICE_TO": "office@example.com"}
        places = {"HOME": str(home), "PARTNERS": str(home / "partners.toml")}
        environ = {**os.environ, **{f"TOOLKIT_{name}": value for name, value in (smtp | places).items()}}
        run = toolkit(["partner", "notify"], environ)
        server.stop()
        assert run.status == 0, run.output
        [(told,)] = rows(database, "SELECT count(*) FROM audit.told_findings")
        goals = f"{mails.count} mails, {run.peak_mb:.0f} MB (goals {60 * scale:g} s and 300 MB)"
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
