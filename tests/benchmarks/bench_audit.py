"""A whole audit beside its floor, a bare COPY of the inputs and SQL by hand in DuckDB, and SQL in PostgreSQL.

The floor writes files, verdicts and missing pieces as the audit does, with their SHA-256. It neither loads what
COPY reads, nor writes the inputs, nor compares findings. At scale 1 it takes two thirds of the CPU seconds of the
SQL in PostgreSQL, so half of those is less than the floor alone. Every tenth of the sales lacks something.
"""

import os
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from adbc_driver_postgresql import dbapi

from tests.benchmarks.made_sales import NOW, fill, statements
from tests.benchmarks.measuring import line, own_database, peak_mb, plain, server_cpu, timed
from tests.support.audits import REMOTE, judge_on, on_duckdb, parts_of, plan_in, sail
from toolkit.audit.duckdb_session import DEFAULT_MEMORY, copy_to, duckdb_session, files_alone
from toolkit.audit.engines import spark_engine
from toolkit.audit.folder import open_audit, part_of
from toolkit.audit.judge import GIVEN, OUTPUTS
from toolkit.audit.run import make_audit
from toolkit.database.connection import Database, raw
from toolkit.database.observations import observe_service

SALES = 400_000

BY_HAND = statements("by_hand.sql")
STEPS = {name: BY_HAND.pop(name) for name in ("files", "verdicts", "missing")}
"""The queries of each output, from the tables that are left in ``BY_HAND`` and from the outputs before it."""

_GRAVEST_FIRST = (
    "status = 'compliant', NOT starts_with(problems, 'COMPLETED_WITHOUT_EVIDENCE'), created_at, sale_id"
)
ORDERED = {
    "files": f"SELECT * EXCLUDE (id) FROM ({STEPS['files']}) ORDER BY id",
    "verdicts": f"FROM ({STEPS['verdicts']}) ORDER BY {_GRAVEST_FIRST}",
    "missing": f"SELECT * EXCLUDE (status, problems, created_at) FROM ({STEPS['missing']}) "
    f"ORDER BY {_GRAVEST_FIRST}",
}
"""The same in DuckDB, in the order in which an audit keeps the rows."""

LARGE = 5_000_000
"""Sales beyond which only the audit itself is measured."""


def main(scale):
    """Print the measurements with their ratios."""
    with own_database() as (database, home):
        sales = max(100, round(SALES * scale))
        fill(database, sales)
        print(f"{sales:,} sales, about {sales * 5 // 2:,} evidence records{'seconds':>14}{'sales/s':>12}  ratio")
        floor, by_hand = (None, None) if sales > LARGE else _floors(database, home, sales)
        observed = timed(lambda: observe_service(database.at(lambda: NOW)))
        line("observing sales and records, nothing new", observed.seconds, sales)
        memory = "1000MB" if sales > LARGE else DEFAULT_MEMORY
        url = database.engine.url.render_as_string(hide_password=False)
        for name, hours in (("a whole audit, the first one", 0), ("a whole audit with nothing new", 1)):
            with ProcessPoolExecutor(1, get_context("spawn")) as own:  # its memory is that of the audit alone
                made, peak = own.submit(_made, url, home, hours, memory).result()
            folder = Path(made.answer)
            parts = open_audit(folder).facts.parts
            rows = sum(parts[each].rows for each in GIVEN)
            told = [f"{made.seconds / rows * 1e6:.2f} s a million rows" + " (goal 0.5)" * bool(hours)]
            if floor and by_hand:
                told.append(f"{_beside(made, floor)} of the floor (goal 1.3)")
                told.append(f"{_beside(made, by_hand)} of PostgreSQL (goal 0.5)")
            if floor and not hours:
                told.append(_same(_fingerprint(folder), _fingerprint(home / "by_hand")))
            told += [f"{made.cpu:.2f} CPU seconds", f"peak {peak:,.0f} MB"]
            line(name, made.seconds, sales, ", ".join(told))
        size = sum(path.stat().st_size for path in folder.iterdir())
        print(f"  {rows:,} rows of inputs; the folder has {size / 1e6:.0f} MB")
        if sales <= LARGE:
            _engines(folder, home, sales)


def _beside(made, floor):
    return f"{made.seconds / floor[0]:.2f} (CPU {made.cpu / floor[1]:.2f})"


def _same(one, other):
    return "the same rows" if one == other else "OTHER ROWS"


def _floors(database, home, sales):
    """Return the seconds of the floor and of the peer, by the clock and of the processors."""
    cpu = partial(server_cpu, home)
    copied = timed(lambda: _copied(database), cpu)
    judged = _in_duckdb(database, home)
    by_hand = timed(lambda: _in_postgresql(database), cpu)
    line("floor: bare COPY, by psycopg", copied.seconds, sales, f"{copied.cpu:.2f} CPU seconds")
    line("floor: SQL by hand in DuckDB", judged.seconds, sales, f"{judged.cpu:.2f} CPU seconds")
    line("peer: SQL by hand in PostgreSQL", by_hand.seconds, sales, f"{by_hand.cpu:.2f} CPU seconds")
    return (copied.seconds + judged.seconds, copied.cpu + judged.cpu), (by_hand.seconds, by_hand.cpu)


def _made(url, home, hours, memory):
    """Return the folder of an audit with its times, and its peak of memory."""
    database, moment = Database(url, embedded=True), NOW + timedelta(hours=hours)
    cpu = partial(server_cpu, home)
    plan = plan_in(home, engine_memory=memory)
    made = timed(lambda: make_audit(database.at(lambda: moment), plan).folder, cpu)
    return made, peak_mb()


def _engines(folder, home, sales):
    """Judge the inputs of an audit once more on each engine, which writes the outputs itself."""
    seconds, prints = {}, {}
    ways = {"DuckDB": on_duckdb(home), "Sail, one core": _on_sail("0"), "Sail, two cores": _on_sail("0,1")}
    if REMOTE in os.environ:
        ways["Spark"] = spark_engine(os.environ[REMOTE])
    for name, opened in ways.items():
        outputs = home / name.replace(", ", "-").replace(" ", "-")
        outputs.mkdir()
        with opened as engine:
            rounds = [timed(partial(judge_on, engine, folder, outputs, NOW)) for _ in range(2)]
        seconds[name], prints[name] = min(each.seconds for each in rounds), _fingerprint(outputs)
        line(f"judging alone, {name}", seconds[name], sales, _same(prints[name], prints["DuckDB"]))
    ratio = seconds["Sail, two cores"] / seconds["Sail, one core"]
    print(
        f"  two cores take {ratio:.2f} of the time of one (goal 0.6); fingerprint {prints['DuckDB'] % 10**12:012}"
    )


@contextmanager
def _on_sail(cores):
    with sail(within=("taskset", "-c", cores)) as url, spark_engine(url) as engine:
        yield engine


def _fingerprint(outputs):
    """Return a number that tells the rows of all outputs, in whatever order, and in whatever files."""
    with duckdb_session(outputs) as session:
        queries = [
            f"SELECT coalesce(sum(hash({', '.join(schema.names)})), 0) "
            f"FROM read_parquet({files_alone(parts_of(outputs, name))})"
            for name, schema in OUTPUTS.items()
        ]
        return sum(int(session.sql(query).fetchall()[0][0]) for query in queries)


def _copied(database):
    """Read every input as binary COPY gives it, and do nothing with it."""
    with database.snapshot() as connection, raw(connection).cursor() as cursor:
        for query in BY_HAND.values():
            with cursor.copy(f"COPY ({query}) TO STDOUT (FORMAT binary)".encode()) as copy:
                for _ in copy:
                    pass


def _in_duckdb(database, home):
    """Time the judging alone, over tables that are there, with its outputs written and hashed."""
    outputs = home / "by_hand"
    outputs.mkdir()

    def judged():
        for name, query in ORDERED.items():
            place = outputs / f"{name}.parquet"
            session.execute(copy_to(query, place))
            session.execute(f"CREATE VIEW {name} AS FROM read_parquet({files_alone([place])})")
            part_of(outputs, name)

    with duckdb_session(home, "4GB") as session:
        session.execute("SET preserve_insertion_order = false")
        with dbapi.connect(plain(database)) as connection, connection.cursor() as cursor:
            for name, query in BY_HAND.items():
                cursor.execute(query)
                session.register("rows", cursor.fetch_record_batch())
                session.execute(f"CREATE TABLE {name} AS FROM rows")
        return timed(judged)


def _in_postgresql(database):
    """Judge into temporary tables."""
    with database.snapshot() as connection:
        server = raw(connection)
        for name, query in BY_HAND.items():
            server.execute(f"CREATE TEMPORARY VIEW {name} AS {query}".encode())
        for name, query in STEPS.items():
            server.execute(f"CREATE TEMPORARY TABLE {name} AS {query}".encode())
        connection.rollback()
