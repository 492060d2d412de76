"""What Alembic runs: `store.setup.upgrade` hands it a connection whose transaction is the caller's."""

from __future__ import annotations

from alembic import context

from headrace.store.schema import schema_for, schema_version

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=schema_for(connection.dialect.name),
    version_table=schema_version.name,
)
with context.begin_transaction():
    context.run_migrations()
