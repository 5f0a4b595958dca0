"""The tables of the sales service: clients, addresses, sales and evidence records."""

import sqlalchemy as sa
from sqlalchemy import Column, ForeignKey, Index, Table, Text, Uuid

from toolkit.storage.tables.metadata import moment, optional, required, service

clients = Table(
    "clients",
    service,
    Column("id", Uuid, primary_key=True),
    *optional(Text, "external_id"),
    *required(Text, "cpf"),
    *optional(Text, "rg"),
    *required(Text, "number_on_dealership", "enrollment", "first_name", "last_name"),
    *optional(Text, "email"),
    *required(sa.Date, "birthdate"),
    *optional(Text, "phone_number"),
    *required(moment, "created_at"),
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
    *required(Text, "utility_group", sa.Boolean, "is_client_financial_responsible"),
    *optional(Text, "partner"),
    *required(moment, "created_at"),
    *optional(moment, "completed_at"),
)

evidences = Table(
    "evidences",
    service,
    Column("id", Uuid, primary_key=True),
    Column("sale_id", Text, ForeignKey(sales.c.id), nullable=False),
    *required(Text, "file_name", "file_format", "type", "evidence_type"),
    Column("object_key", Text, nullable=False, unique=True),
    *required(Text, "requested_by", moment, "requested_at", "expires_at"),
    Index(None, "sale_id"),
)
