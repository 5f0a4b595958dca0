"""The tables of the sales service: clients, addresses, sales and evidence records."""

import sqlalchemy as sa
from sqlalchemy import Column, ForeignKey, Index, Table, Text, Uuid

from toolkit.storage.tables.metadata import columns, moment, service

clients = Table(
    "clients",
    service,
    Column("id", Uuid, primary_key=True),
    *columns(Text, "external_id?", "cpf", "rg?", "number_on_dealership", "enrollment", "first_name", "last_name"),
    *columns(Text, "email?", sa.Date, "birthdate", Text, "phone_number?", moment, "created_at"),
    Index(None, "cpf"),
)

addresses = Table(
    "addresses",
    service,
    Column("id", Uuid, primary_key=True),
    Column("client_id", Uuid, ForeignKey(clients.c.id), nullable=False),
    *columns(Text, "neighborhood", "installation_number", "address", "address_number", "city", "zip_code"),
    Index(None, "client_id"),
)

sales = Table(
    "sales",
    service,
    Column("id", Text, primary_key=True),
    Column("client_id", Uuid, ForeignKey(clients.c.id)),
    *columns(Text, "utility_group", sa.Boolean, "is_client_financial_responsible", Text, "partner?"),
    *columns(moment, "created_at", "completed_at?"),
)

evidences = Table(
    "evidences",
    service,
    Column("id", Uuid, primary_key=True),
    Column("sale_id", Text, ForeignKey(sales.c.id), nullable=False),
    *columns(Text, "file_name", "file_format", "type", "evidence_type"),
    Column("object_key", Text, nullable=False, unique=True),
    *columns(Text, "requested_by", moment, "requested_at", "expires_at"),
    Index(None, "sale_id"),
)
