"""The tables of the sales service: clients, addresses, sales and evidence records."""

import sqlalchemy as sa
from sqlalchemy import Column, ForeignKey, Index, Table, Text, Uuid

from toolkit.storage.tables.metadata import moment, required, service

clients = Table(
    "clients",
    service,
    Column("id", Uuid, primary_key=True),
    Column("external_id", Text),
    Column("cpf", Text, nullable=False),
    Column("rg", Text),
    *required(Text, "number_on_dealership", "enrollment", "first_name", "last_name"),
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
    *required(Text, "neighborhood", "installation_number", "address", "address_number", "city", "zip_code"),
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
    *required(Text, "file_name", "file_format", "type", "evidence_type"),
    Column("object_key", Text, nullable=False, unique=True),
    Column("requested_by", Text, nullable=False),
    *required(moment, "requested_at", "expires_at"),
    Index(None, "sale_id"),
)
