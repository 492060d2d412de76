"""The `pg>` operator: queries on PostgreSQL."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from headrace.authoring.dig import as_integer, as_seconds, as_text
from headrace.operators.dig.contract import Job, OperatorError, Outcome, Params
from headrace.operators.dig.service_options import ServiceOptions
from headrace.operators.dig.sql_names import quoted
from headrace.operators.dig.sql_query import read_query, run_query
from headrace.operators.dig.sql_transactions import RowPerStatement
from headrace.operators.dig.texts import text_of

_DAY = 24 * 3600


def run_pg(job: Job) -> Outcome:
    """Run a query of a file or of the task itself."""
    params = job.params.with_defaults("pg")
    query = read_query(params, text_of(job, params, "query"))
    options = connection_options(job, params, ServiceOptions(job, params, "pg"), 5432)
    status = RowPerStatement(*status_options(params)) if params.boolean("strict_transaction", True) else None
    return run_query(job, query, lambda: connect(options), status, "pg")


def connection_options(job: Job, params: Params, options: ServiceOptions, port: int) -> dict[str, Any]:
    """How to reach the database. The limits hold for the connection and for each statement."""
    override = params.read("password_override", as_text, None)
    password = options.secret("password") if override is None else job.required_secret(override)
    schema = options.read("schema", as_text, None)
    statement_seconds = options.read("socket_timeout", as_seconds, 1800)
    settings = {"statement_timeout": str(statement_seconds * 1000)}
    if schema is not None:
        settings["search_path"] = quoted(schema)
    return {
        "host": options.text("host"),
        "port": options.read("port", as_integer, port),
        "user": options.text("user"),
        "password": password,
        "dbname": options.text("database"),
        "sslmode": "require" if options.boolean("ssl", False) else "prefer",
        "connect_timeout": options.read("connect_timeout", as_seconds, 30),
        "application_name": "headrace",
        "settings": settings,
    }


def status_options(params: Params) -> tuple[str, str | None, timedelta]:
    """Table, schema and memory of what was done."""
    return (
        params.read("status_table", as_text, "__digdag_status"),
        params.read("status_table_schema", as_text, None),
        timedelta(seconds=params.read("status_table_cleanup", as_seconds, _DAY)),
    )


def connect(options: dict[str, Any]) -> Any:
    """A connection where each statement is its own transaction unless it says otherwise."""
    try:
        import psycopg  # an extra, which only SQL operators need
    except ImportError:
        message = "queries on PostgreSQL need psycopg"
        raise OperatorError(message, hint='pip install "headrace[postgres]"', is_retryable=False) from None
    settings: dict[str, str] = options["settings"]
    connection = psycopg.connect(**{key: value for key, value in options.items() if key != "settings"}, autocommit=True)
    for name, value in settings.items():
        connection.execute(f"SET {name} TO {value}")
    return connection
