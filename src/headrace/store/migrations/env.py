"""What Alembic runs: `store.setup.upgrade` hands it a connection whose transaction is the caller's."""

from __future__ import annotations

from alembic import context

from headrace.store.schema import metadata, schema_version

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=schema_version.name,
)
with context.begin_transaction():
    context.run_migrations()
