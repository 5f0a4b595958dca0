"""Run by Alembic: migrate over the connection that ``toolkit.database.schema`` hands in."""

from alembic import context

from toolkit.database.tables import AUDIT, toolkit

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=toolkit,
    version_table_schema=AUDIT,
    include_schemas=True,
)
with context.begin_transaction():
    context.run_migrations()
