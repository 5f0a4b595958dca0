"""Find the tables behind the service's relations, through views, that may not show all that there is."""

from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Connection

from toolkit.storage.tables import OWN_TABLES, SERVICE, service


def behind_policies(connection: Connection, is_mapped: bool) -> list[sa.Row[Any]]:
    """Return ``relation``, ``place`` and ``role``: the tables whose policies may hide rows from who reads them."""
    return _asked(connection, _POLICIES, is_mapped)


def kept_elsewhere(connection: Connection, is_mapped: bool) -> list[sa.Row[Any]]:
    """Return ``relation``, ``place`` and ``server``: tables of other servers; without one, materialised views."""
    return _asked(connection, _ELSEWHERE, is_mapped)


def hidden_and_copied(connection: Connection, is_mapped: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the tables whose policies may hide rows, and the materialised views, by their names."""
    hidden = {row.place for row in behind_policies(connection, is_mapped)}
    copied = {row.place for row in kept_elsewhere(connection, is_mapped) if row.server is None}
    return tuple(sorted(hidden)), tuple(sorted(copied))


def _asked(connection: Connection, query: str, is_mapped: bool) -> list[sa.Row[Any]]:
    names = [table.name for table in service.sorted_tables]
    bound = {"schema": SERVICE if is_mapped else OWN_TABLES, "names": names}
    return list(connection.execute(sa.text(_REACHED + query), bound))


_REACHED: Final = """
    WITH RECURSIVE reached AS (
        SELECT named.relname AS relation, named.oid AS place, relkind AS kind,
               CASE relkind WHEN 'v' THEN pg_get_userbyid(relowner) ELSE current_user END AS reader
        FROM pg_class AS named JOIN pg_namespace AS space ON space.oid = relnamespace
        WHERE nspname = :schema AND named.relname = ANY(:names)
        UNION
        SELECT relation, behind.oid, relkind,
               CASE WHEN relkind IN ('v', 'm') AND NOT coalesce(
                   (SELECT option_value::boolean FROM pg_options_to_table(reloptions)
                    WHERE option_name = 'security_invoker'), false)
               THEN pg_get_userbyid(relowner) ELSE reader END
        FROM reached
        JOIN pg_rewrite ON ev_class = place
        JOIN pg_depend AS used ON used.classid = 'pg_rewrite'::regclass AND used.objid = pg_rewrite.oid
             AND used.refclassid = 'pg_class'::regclass AND used.refobjid <> place
        JOIN pg_class AS behind ON behind.oid = used.refobjid
        WHERE kind IN ('v', 'm')
    )
"""
"""Tables behind the views, those of the service included, each with the role whose rights hold for it.

What a view names is read with its owner's rights, or with those of its own reader (``security_invoker``).
"""

_POLICIES: Final = """
    SELECT DISTINCT relation, hidden.oid::regclass::text AS place, quote_ident(reader.rolname) AS role
    FROM reached
    JOIN pg_class AS hidden ON hidden.oid = place
    JOIN pg_roles AS reader ON reader.rolname = reached.reader
    WHERE hidden.relrowsecurity AND NOT reader.rolsuper AND NOT reader.rolbypassrls
      AND (hidden.relforcerowsecurity OR NOT pg_has_role(reader.oid, hidden.relowner, 'USAGE'))
    ORDER BY 1, 2
"""

_ELSEWHERE: Final = """
    SELECT DISTINCT relation, place::regclass::text AS place, srvname AS server
    FROM reached
    LEFT JOIN pg_foreign_table ON ftrelid = place
    LEFT JOIN pg_foreign_server AS server ON server.oid = ftserver
    WHERE kind IN ('m', 'f')
    ORDER BY 1, 2
"""
