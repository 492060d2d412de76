"""Names of tables in SQL texts: quoted, so that a name is a name and never a statement."""

from __future__ import annotations

from headrace.operators.dig.contract import OperatorError


def quoted(name: str) -> str:
    """One name."""
    if not name or "\0" in name:
        raise OperatorError(f"expected the name of a table or schema, got: `{name}`")
    return '"' + name.replace('"', '""') + '"'


def quoted_table(name: str, schema: str | None = None) -> str:
    """`table` or `schema.table`, with the schema given apart if it is not in the name."""
    first, dot, second = name.partition(".")
    parts = [first, second] if dot else [schema, name] if schema else [name]
    return ".".join(quoted(part) for part in parts if part is not None)
