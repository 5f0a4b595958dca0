"""Find who pays for a sale, where the sale does not say it: by another column, or rows of a table of people."""

from dataclasses import dataclass
from typing import Final

from toolkit.storage.service_map.catalog import CatalogTable, Column, Reference
from toolkit.storage.service_map.draft import codes
from toolkit.storage.service_map.draft.choices import Choice
from toolkit.storage.service_map.draft.polymorphic import kinds_and_keys
from toolkit.storage.service_map.draft.references import KEY_WORDS, meanings_of, reference_to, references_of
from toolkit.storage.service_map.draft.samples import Field, Samples
from toolkit.storage.service_map.draft.vocabulary import tokens
from toolkit.storage.service_map.expressions import THIS, literal, quoted
from toolkit.storage.service_map.model import TODO

_PAYER: Final = {"payer", "responsible", "financial"}


@dataclass(frozen=True)
class People:
    """A table with a row for each part that somebody plays in a sale."""

    table: CatalogTable
    sale: str
    """The column that names the sale, and the column of the sale that it names."""
    sale_key: str
    person: str
    person_key: str
    role: str
    client: str
    payer: str

    def of_client(self, wanted: str | None) -> Choice | None:
        """Return the client of the sale, where rows of people name clients by the key that is wanted."""
        if wanted != self.person_key:
            return None
        rows = (
            f"(SELECT {quoted(self.sale)}, {quoted(self.person)} FROM {self.table.name} "  # noqa: S608  # of the catalog
            f"WHERE {quoted(self.role)}::text = {literal(self.client)}) AS clients"
        )
        source = {"column": self.person, "table": rows, "key": self.sale, "by": self.sale_key}
        return Choice(source, "the person whose part is the client's", review=True)

    def of_payer(self) -> Choice:
        """Return whether nobody but the client pays."""
        own = f"{THIS}.{quoted(self.sale_key)}"
        sql = (
            f"NOT EXISTS (SELECT FROM {self.table.name} AS payer WHERE payer.{quoted(self.sale)} = {own} "  # noqa: S608
            f"AND payer.{quoted(self.role)}::text = {literal(self.payer)} "
            f"AND NOT EXISTS (SELECT FROM {self.table.name} AS client WHERE client.{quoted(self.sale)} = {own} "
            f"AND client.{quoted(self.role)}::text = {literal(self.client)} "
            f"AND client.{quoted(self.person)} = payer.{quoted(self.person)}))"
        )
        return Choice({"sql": sql}, "nobody but the client plays the payer's part", review=True)


def people_of(sales: CatalogTable, clients: CatalogTable, samples: Samples) -> People | None:
    """Return the table of the parts that people play in sales, if there is one."""
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
            payer = next((code for code, role in roles.items() if _PAYER & set(tokens(role))), None)
            client = next(
                (code for code, role in roles.items() if code != payer and "client" in tokens(role)), None
            )
            if payer is not None and client is not None:
                return People(
                    table, to_sale.column, to_sale.key, to_client.column, to_client.key, column.name, client, payer
                )
    return None


def payer_of(
    sales: CatalogTable,
    clients: CatalogTable | None,
    cpf: str | None,
    samples: Samples,
) -> Choice | None:
    """Return whether the client pays, by a column of the sale that names the payer, or a table of payers."""
    references = list(references_of(sales, samples))
    to_client = None
    if clients is not None:
        others = [each for each in references if not _PAYER & set(tokens(sales.columns[each.column].says))]
        to_client = reference_to(clients, "clients", others, sales)
    for kind, key in kinds_and_keys(sales):
        if _PAYER & set(tokens(key.says)):
            kinds = {value: codes.payer(value) for value in samples.values(Field(sales, kind))}
            same = f"{THIS}.{quoted(key.name)} = {THIS}.{quoted(to_client.column)}" if to_client else "true"
            owns = ", ".join(literal(value) for value, own in kinds.items() if own)
            if owns:
                sql = f"coalesce({THIS}.{quoted(kind.name)}::text IN ({owns}) AND {same}, true)"
                return Choice({"sql": sql}, "the payer is the client, or none is named", review=True)
            return Choice({"sql": TODO}, f"which {kind.name} is the client? {', '.join(kinds)}")
    for column in sales.columns.values():
        said, payer = set(tokens(column.says)), f"{THIS}.{quoted(column.name)}"
        if not said & _PAYER:
            continue
        named = next((each for each in references if each.column == column.name), None)
        own = None if to_client is None else sales.columns[to_client.column]
        beside = None
        if named is not None:
            beside = _client_beside(sales, column, [each for each in references if each.table == named.table])
        elif own is not None and column.family == own.family and said <= _PAYER | KEY_WORDS | {"client"}:
            beside = own.name if said & {"payer", "financial"} else None
        if beside is not None:
            sql = f"{payer} IS NULL OR {payer} = {THIS}.{quoted(beside)}"
            return Choice({"sql": sql}, "the payer is the client, or none is named", review=True)
        if named is not None and said & {"payer", "financial"}:
            why = f"is the row of {named.table} that {column.name} names the client?"
            return Choice({"sql": TODO}, why)
        by_cpf = named is None and said & {"cpf", "document"} and column.family in {"text", "integer", "number"}
        if by_cpf and cpf is not None and clients is not None and to_client is not None:
            client = (
                f"(SELECT {_digits('client', cpf)} FROM {clients.name} AS client "  # noqa: S608
                f"WHERE client.{quoted(to_client.key)} = {THIS}.{quoted(to_client.column)})"
            )
            sql = f"coalesce({payer}::text, '') = '' OR {_digits(THIS, column.name)} = {client}"
            return Choice({"sql": sql}, "the payer's CPF is the client's, or none is named", review=True)
    for table in samples.catalog.values():
        reference = next((each for each in references_of(table, samples) if each.table == sales.name), None)
        if reference is not None and _PAYER & set(tokens(table.says)):
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


def _client_beside(sales: CatalogTable, payer: Column, references: list[Reference]) -> str | None:
    """Return the column that names the client, among those that name rows of the payer's table."""
    others = {each.column for each in references if each.column != payer.name}
    said = {each: set(tokens(sales.columns[each].says)) for each in sorted(others)}
    clients = [each for each in said if "client" in said[each]]
    likely = clients or [each for each in said if not said[each] & _NO_CLIENT]
    return likely[0] if len(likely) == 1 else None


_NO_CLIENT: Final = {"user", "by", "partner", *_PAYER}
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
