"""The audit of a service that is read through a mapping, beside the audit of the contract's own tables.

Scale 1 is 400,000 sales with 1,000,000 evidence records. The other team's tables hold the same data under numbers
as keys, with codes, bare times in two columns, a table of partners and the public name of a sale beside its key.
An audit is: observe the service, and judge all sales, or those that changed: none, or a hundredth that the service
completed. Goal: at most 1.1 times the own tables.
"""

from __future__ import annotations

import statistics
from functools import partial

import sqlalchemy as sa

from tests.benchmarks.bench_audit import SALES
from tests.benchmarks.made_sales import NOW, fill
from tests.benchmarks.timing import timed
from tests.own_services import own_home
from toolkit.operations.judge.audit import run_audit
from toolkit.operations.observe.service_history import Observed, observe_service
from toolkit.storage import embedded, schema
from toolkit.storage.database import Database
from toolkit.storage.service_map import load_map

_ROUNDS = 5
_COPY = "mapped"


def main(scale: float) -> None:
    """Print both audits and their ratio."""
    with own_home() as home:
        url = embedded.database_url(home)
        own, mapped = Database(url, embedded=True), Database(_beside(url, _COPY), embedded=True, mapped=True)
        schema.upgrade(own, service_tables=True)
        sales = max(100, round(SALES * scale))
        fill(own, sales)
        own.dispose()
        with sa.create_engine(_beside(url, "postgres"), isolation_level="AUTOCOMMIT").connect() as connection:
            connection.exec_driver_sql(f"CREATE DATABASE {_COPY} TEMPLATE {sa.make_url(url).database}")
        with mapped.raw() as connection:
            connection.execute(_OTHER_TABLES.encode())
        (home / "map.toml").write_text(_MAP)
        schema.upgrade(mapped, service_map=load_map(home / "map.toml"))
        for database in (own, mapped):  # the mapping tells the same as the tables did
            assert observe_service(database, lambda: NOW) == (Observed(0, 0, 0), Observed(0, 0, 0))
            run_audit(database, clock=lambda: NOW)
        print(f"{sales:,} sales, {sales * 5 // 2:,} evidence records{'seconds':>28}  ratio")
        for everything, changed, work in (
            (True, False, "judging all sales"),
            (False, False, "after a night without changes"),
            (False, True, "after a night with a hundredth completed"),
        ):
            seconds: dict[Database, list[float]] = {own: [], mapped: []}
            for number in range(_ROUNDS):  # in turn, so that what else the machine does falls on both
                for database, times in seconds.items():
                    if changed:
                        with database.raw() as connection:
                            connection.execute(_COMPLETED[database.mapped], {"number": number})
                    audit = partial(_audit, database, everything=everything)
                    times.append(timed(audit).seconds)
            floor, ours = (statistics.median(times) for times in seconds.values())
            print(f"{f'own tables, {work}':60}{floor:>8.2f}  1.00")
            print(f"{f'through a mapping, {work}':60}{ours:>8.2f}  {ours / floor:.2f} (goal 1.1)", flush=True)
        for database in (own, mapped):
            database.dispose()


def _beside(url: str, name: str) -> str:
    """Return the address of another database of the cluster: one belongs to one service."""
    return sa.make_url(url).set(database=name).render_as_string(hide_password=False)


def _audit(database: Database, *, everything: bool = False) -> None:
    observe_service(database, lambda: NOW)
    run_audit(database, clock=lambda: NOW, everything=everything)


_COMPLETED = {
    False: """
        UPDATE public.sales SET completed_at = created_at + interval '1 day'
        WHERE substr(id, 3)::int %% 100 = %(number)s
    """,
    True: """
        UPDATE other.venda SET concluida_em = dia + hora + interval '1 day'
        WHERE substr(codigo, 3)::int %% 100 = %(number)s
    """,
}
"""Every hundredth sale, by whether the database is read through a mapping."""

_OTHER_TABLES = """
    CREATE SCHEMA other;
    CREATE TABLE other.parceiro (id int PRIMARY KEY, nome text NOT NULL);
    INSERT INTO other.parceiro
    SELECT row_number() OVER (ORDER BY partner), partner FROM (SELECT DISTINCT partner FROM public.sales) AS each;
    CREATE TABLE other.venda (
        id int PRIMARY KEY, codigo text NOT NULL UNIQUE, cliente uuid NOT NULL, grupo smallint NOT NULL,
        fl_resp char(1) NOT NULL, parceiro_id int NOT NULL REFERENCES other.parceiro, dia date NOT NULL,
        hora time NOT NULL, concluida_em timestamp);
    INSERT INTO other.venda
    SELECT row_number() OVER (ORDER BY sales.id), sales.id, client_id, ascii(utility_group) - 64,
           CASE WHEN is_client_financial_responsible THEN 'S' ELSE 'N' END, parceiro.id,
           (created_at AT TIME ZONE 'UTC')::date, (created_at AT TIME ZONE 'UTC')::time,
           completed_at AT TIME ZONE 'UTC'
    FROM public.sales JOIN other.parceiro ON nome = partner;
    CREATE TABLE other.prova (
        id uuid PRIMARY KEY, venda_id int NOT NULL REFERENCES other.venda, tipo text NOT NULL, media text NOT NULL,
        chave text NOT NULL, nome text NOT NULL, por text NOT NULL, criada_em timestamp NOT NULL,
        expira_em timestamp);
    CREATE INDEX ON other.prova (venda_id);
    INSERT INTO other.prova
    SELECT evidences.id, venda.id, left(evidence_type, 3) || length(evidence_type), type, object_key, file_name,
           requested_by, requested_at AT TIME ZONE 'UTC', expires_at AT TIME ZONE 'UTC'
    FROM public.evidences JOIN other.venda ON codigo = sale_id;
    DROP TABLE public.evidences, public.sales, public.addresses, public.clients;
    ANALYZE;
"""

_MAP = """
timezone = "UTC"
[clients]
absent = true
[addresses]
absent = true
[sales]
from = "other.venda"
[sales.columns]
id = "codigo"
client_id = "cliente"
utility_group = { column = "grupo", codes = { 1 = "A", 2 = "B", 3 = "C", 4 = "D" } }
is_client_financial_responsible = { column = "fl_resp", codes = { S = true, N = false } }
partner = { column = "nome", table = "other.parceiro", key = "id", by = "parceiro_id" }
created_at = { date = "dia", time = "hora" }
completed_at = "concluida_em"
[evidences]
from = "other.prova"
[evidences.columns]
id = "id"
sale_id = { column = "codigo", table = "other.venda", key = "id", by = "venda_id" }
file_name = "nome"
file_format = "media"
type = "media"
object_key = "chave"
requested_by = "por"
requested_at = "criada_em"
expires_at = "expira_em"
[evidences.columns.evidence_type]
column = "tipo"
[evidences.columns.evidence_type.codes]
POV3 = "POV"
AUT3 = "AUT"
KYC3 = "KYC"
DOC15 = "DOC_CONTRATANTE"
DOC26 = "DOC_RESPONSAVEL_FINANCEIRO"
DOC40 = "DOC_CONTRATANTE_E_RESPONSAVEL_FINANCEIRO"
"""
