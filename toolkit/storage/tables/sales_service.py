"""The tables of the sales service: clients, addresses, sales and evidence records."""

import sqlalchemy as sa
from sqlalchemy import Column, ForeignKey, Index, Table, Text, Uuid

from toolkit.storage.tables.metadata import moment, service

clients = Table(
    "clients",
    service,
    Column("id", Uuid, primary_key=True),
    Column("external_id", Text),
    Column("cpf", Text, nullable=False),
    Column("rg", Text),
    Column("number_on_dealership", Text, nullable=False),
    Column("enrollment", Text, nullable=False),
    Column("first_name", Text, nullable=False),
    Column("last_name", Text, nullable=False),
    Column("email", Text),
    Column("birthdate", sa.Date, nullable=False),
    Column("phone_number", Text),
    Column("created_at", moment, nullable=False),
    Index(None, "cpf"),
)

addresses = Table(
    "addresses",
    service,
    Column("id", Uuid, primary_key=True),
    Column("client_id", Uuid, ForeignKey(clients.c.id), nullable=False),
    Column("neighborhood", Text, nullable=False),
    Column("installation_number", Text, nullable=False),
    Column("address", Text, nullable=False),
    Column("address_number", Text, nullable=False),
    Column("city", Text, nullable=False),
    Column("zip_code", Text, nullable=False),
    Index(None, "client_id"),
)

sales = Table(
    "sales",
    service,
    Column("id", Text, primary_key=True),
    Column("client_id", Uuid, ForeignKey(clients.c.id)),
    Column("utility_group", Text, nullable=False),
    Column("is_client_financial_responsible", sa.Boolean, nullable=False),
    Column("partner", Text),
    Column("created_at", moment, nullable=False),
    Column("completed_at", moment),
)

evidences = Table(
    "evidences",
    service,
    Column("id", Uuid, primary_key=True),
    Column("sale_id", Text, ForeignKey(sales.c.id), nullable=False),
    Column("file_name", Text, nullable=False),
    Column("file_format", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("evidence_type", Text, nullable=False),
    Column("object_key", Text, nullable=False, unique=True),
    Column("requested_by", Text, nullable=False),
    Column("requested_at", moment, nullable=False),
    Column("expires_at", moment, nullable=False),
    Index(None, "sale_id"),
)
