"""Find who pays for a sale, where the sale does not say it: by another column, or rows of a table of people."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from toolkit.storage.service_map.catalog import CatalogTable, Column, Reference
from toolkit.storage.service_map.draft import codes
from toolkit.storage.service_map.draft.choices import Choice
from toolkit.storage.service_map.draft.references import (
    KEY_WORDS,
    kinds_and_keys,
    meanings_of,
    reference_to,
    references_of,
)
from toolkit.storage.service_map.draft.samples import Field, Samples
from toolkit.storage.service_map.draft.vocabulary import PAYER, tokens
from toolkit.storage.service_map.expressions import THIS, literal, quoted
from toolkit.storage.service_map.model import TODO


@dataclass(frozen=True)
class People:
    """The client and the payer of a sale by a table with a row for each part that somebody plays in it."""

    person_key: str
    """The column of the clients that its rows name."""
    client: Choice
    payer: Choice


def people_of(sales: CatalogTable, clients: CatalogTable, samples: Samples) -> People | None:
    """Return who plays which part in a sale, if there is a table of parts."""
    for table in samples.catalog.values():
        references = list(references_of(table, samples))
        to_sale = next((each for each in references if each.table == sales.name), None)
        to_client = next((each for each in references if each.table == clients.name), None)
        if table in (sales, clients) or to_sale is None or to_client is None:
            continue
        for column in table.columns.values():
            named_row = any(each.column == column.name for each in references)
            if not named_row and column.family not in {"text", "enum"} and not column.comment:
                continue
            roles = meanings_of(Field(table, column), samples)
            payer = next((code for code, role in roles.items() if PAYER & set(tokens(role))), None)
            others = {code: role for code, role in roles.items() if code != payer}
            client = next((code for code, role in others.items() if "client" in tokens(role)), None)
            of_files = any(map(codes.evidence_type, roles.values()))  # whose voice, whose document
            if payer is not None and client is not None and not of_files:
                return _by_parts(table, to_sale, to_client, quoted(column.name), client, payer)
    return None


def _by_parts(
    table: CatalogTable, to_sale: Reference, to_client: Reference, role: str, client: str, payer: str
) -> People:
    sale, person, own = quoted(to_sale.column), quoted(to_client.column), f"{THIS}.{quoted(to_sale.key)}"
    clients = f"(SELECT {sale}, {person} FROM {table.name} WHERE {role}::text = {literal(client)}) AS clients"  # noqa: S608
    row = {"column": to_client.column, "table": clients, "key": to_sale.column, "by": to_sale.key}
    somebody_else = (
        f"SELECT FROM {table.name} AS payer WHERE payer.{sale} = {own} AND payer.{role}::text = {literal(payer)} "  # noqa: S608
        f"AND NOT EXISTS (SELECT FROM {table.name} AS client WHERE client.{sale} = {own} "
        f"AND client.{role}::text = {literal(client)} AND client.{person} = payer.{person})"
    )
    return People(
        to_client.key,
        Choice(row, "the person whose part is the client's", review=True),
        Choice(
            {"sql": f"NOT EXISTS ({somebody_else})"}, "nobody but the client plays the payer's part", review=True
        ),
    )


def payer_of(
    sales: CatalogTable, clients: CatalogTable | None, cpf: str | None, samples: Samples
) -> Choice | None:
    """Return whether the client pays, by a column of the sale that names the payer, or a table of payers."""
    references = list(references_of(sales, samples))
    to_client = None
    if clients is not None:
        others = [each for each in references if not PAYER & set(tokens(sales.columns[each.column].says))]
        to_client = reference_to(clients, "clients", others, sales)
    for kind, key in kinds_and_keys(sales):
        if PAYER & set(tokens(key.says)):
            owners = {value: codes.payer(value) for value in samples.values(Field(sales, kind))}
            same = f"{THIS}.{quoted(key.name)} = {THIS}.{quoted(to_client.column)}" if to_client else "true"
            owns = ", ".join(literal(value) for value, own in owners.items() if own)
            if owns:
                sql = f"coalesce({THIS}.{quoted(kind.name)}::text IN ({owns}) AND {same}, true)"
                return Choice({"sql": sql}, "the payer is the client, or none is named", review=True)
            return Choice({"sql": TODO}, f"which {kind.name} is the client? {', '.join(owners)}")
    for column in sales.columns.values():
        said, payer = set(tokens(column.says)), f"{THIS}.{quoted(column.name)}"
        if not said & PAYER:
            continue
        named = next((each for each in references if each.column == column.name), None)
        own = None if to_client is None else sales.columns[to_client.column]
        beside = None
        if named is not None:
            beside = _client_beside(sales, column, [each for each in references if each.table == named.table])
        elif own is not None and column.family == own.family and said <= PAYER | KEY_WORDS | {"client"}:
            beside = own.name if said & {"payer", "financial"} else None
        if beside is not None:
            sql = f"{payer} IS NULL OR {payer} = {THIS}.{quoted(beside)}"
            return Choice({"sql": sql}, "the payer is the client, or none is named", review=True)
        if named is not None and (kinds := _by_kinds(Field(sales, column), samples)):
            return Choice({"column": column.name, "codes": kinds}, f"by the rows of {named.table}", review=True)
        if named is not None and said & {"payer", "financial"}:
            why = f"is the row of {named.table} that {column.name} names the client?"
            return Choice({"sql": TODO}, why)
        by_cpf = named is None and said & {"cpf", "document"} and column.family in {"text", "integer", "number"}
        theirs = [each.name for each in sales.columns.values() if set(tokens(each.says)) - {"client"} == {"cpf"}]
        if by_cpf and len(theirs) == 1:
            sql = f"coalesce({payer}::text, '') = '' OR {_digits(THIS, column.name)} = {_digits(THIS, theirs[0])}"
            return Choice({"sql": sql}, "the payer's CPF is the client's, or none is named", review=True)
        if by_cpf and cpf is not None and clients is not None and to_client is not None:
            client = (
                f"(SELECT {_digits('client', cpf)} FROM {clients.name} AS client "  # noqa: S608
                f"WHERE client.{quoted(to_client.key)} = {THIS}.{quoted(to_client.column)})"
            )
            sql = f"coalesce({payer}::text, '') = '' OR {_digits(THIS, column.name)} = {client}"
            return Choice({"sql": sql}, "the payer's CPF is the client's, or none is named", review=True)
    for table in samples.catalog.values():
        reference = next((each for each in references_of(table, samples) if each.table == sales.name), None)
        if reference is not None and PAYER & set(tokens(table.says)):
            if (other_cpf := _other_cpf(table, reference, to_client, clients)) is not None:
                return Choice(
                    {"sql": other_cpf}, "no payer is named with another CPF than the client's", review=True
                )
            own_row = f"payer.{quoted(reference.column)} = {THIS}.{quoted(reference.key)}"
            none = f"NOT EXISTS (SELECT FROM {table.name} AS payer WHERE {own_row})"
            if samples.rows(f"SELECT true::text FROM {sales.name} AS {THIS} WHERE {none} LIMIT 1"):  # noqa: S608
                return Choice({"sql": none}, "a payer is named only where it is somebody else", review=True)
            return Choice({"sql": TODO}, f"every sale has a row of {table.name}: when does the client pay?")
    return None


def _by_kinds(named: Field, samples: Samples) -> Mapping[str, bool | None]:
    """Return whether the client pays, by each row of a table of kinds; nothing where some row does not say it."""
    said = {code: codes.payer(kind) for code, kind in meanings_of(named, samples).items()}
    return {} if None in said.values() else said


def _client_beside(sales: CatalogTable, payer: Column, references: list[Reference]) -> str | None:
    """Return the column that names the client, among those that name rows of the payer's table."""
    others = {each.column for each in references if each.column != payer.name}
    said = {each: set(tokens(sales.columns[each].says)) for each in sorted(others)}
    clients = [each for each in said if "client" in said[each]]
    likely = clients or [each for each in said if not said[each] & _NO_CLIENT]
    return likely[0] if len(likely) == 1 else None


_NO_CLIENT: Final = {"user", "by", "partner", *PAYER}
"""Tokens of columns that name other people than the client."""


def _other_cpf(
    payers: CatalogTable, to_sale: Reference, to_client: Reference | None, clients: CatalogTable | None
) -> str | None:
    """Return whether no payer of the sale has another CPF than its client, where both tables hold one."""
    if clients is None:
        return None
    theirs, own = (
        next((each.name for each in table.columns.values() if "cpf" in tokens(each.says)), None)
        for table in (payers, clients)
    )
    if to_client is None or theirs is None or own is None:
        return None
    return (
        f"NOT EXISTS (SELECT FROM {payers.name} AS payer LEFT JOIN {clients.name} AS client "  # noqa: S608
        f"ON client.{quoted(to_client.key)} = {THIS}.{quoted(to_client.column)} "
        f"WHERE payer.{quoted(to_sale.column)} = {THIS}.{quoted(to_sale.key)} "
        f"AND {_digits('payer', theirs)} IS DISTINCT FROM {_digits('client', own)})"
    )


def _digits(table: str, column: str) -> str:
    return f"lpad(regexp_replace({table}.{quoted(column)}::text, '[^0-9]', '', 'g'), 11, '0')"
