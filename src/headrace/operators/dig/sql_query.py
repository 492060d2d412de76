"""What `pg>` and `redshift>` share: read the query, run it once, keep what it gives back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headrace.authoring.dig import as_text
from headrace.operators.dig.contract import Job, OperatorError, Outcome, Params
from headrace.operators.dig.poll_intervals import poll_again
from headrace.operators.dig.sql_names import quoted_table
from headrace.operators.dig.sql_results import stored_results, wanted_results, write_csv
from headrace.operators.dig.sql_transactions import Busy, StatusTable

_FETCHED_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class Query:
    """A query and what is to be done with it; at most one of the four."""

    text: str
    create_table: str | None
    insert_into: str | None
    download_file: str | None
    results: str
    is_secret: bool = False
    """It holds credentials, so no message may quote it."""

    @property
    def is_read_only(self) -> bool:
        return self.download_file is not None or bool(self.results)

    @property
    def statement(self) -> str:
        if self.create_table is not None:
            table = quoted_table(self.create_table)
            return f"DROP TABLE IF EXISTS {table}; CREATE TABLE {table} AS {self.text}"
        if self.insert_into is not None:
            return f"INSERT INTO {quoted_table(self.insert_into)}\n{self.text}"
        return self.text


def read_query(params: Params, text: str) -> Query:
    """The query of a task. The semicolon at its end is of no use inside of another statement."""
    query = Query(
        text=text.strip().rstrip(";").rstrip(),
        create_table=params.read("create_table", as_text, None),
        insert_into=params.read("insert_into", as_text, None),
        download_file=params.read("download_file", as_text, None),
        results=wanted_results(params),
    )
    uses = {
        "create_table": query.create_table,
        "insert_into": query.insert_into,
        "download_file": query.download_file,
        "store_last_results": query.results or None,
    }
    used = [f"`{name}`" for name, value in uses.items() if value is not None]
    if len(used) > 1:
        raise OperatorError(f"a query has one use for its result, got: {' and '.join(used)}")
    return query


def run_query(job: Job, query: Query, connect: Callable[[], Any], status: StatusTable | None, store_as: str) -> Outcome:
    """Run it: for its result in a transaction that only reads, else once and for all."""
    import psycopg  # an extra, which only SQL operators need

    try:
        with connect() as connection:
            if query.is_read_only:
                return _fetch(job, query, connection, store_as)
            run_statement(job, connection, query.statement, status)
    except psycopg.Error as error:
        words = error.diag.message_primary if query.is_secret else str(error).strip()
        raise OperatorError(f"the database said no: {words}", type_name=type(error).__name__) from None
    return Outcome()


def run_statement(job: Job, connection: Any, statement: str, status: StatusTable | None) -> None:
    """Run a statement in a transaction; with a status table only if no earlier try has."""
    if status is None:
        connection.execute(statement)
        return
    try:
        is_new = status.run_once(connection, job.identity, lambda: connection.execute(statement))
    except Busy:
        raise poll_again(job, 1, 1200) from None
    if not is_new:
        print("an earlier try has run the statement already", flush=True)


def _fetch(job: Job, query: Query, connection: Any, store_as: str) -> Outcome:
    with connection.transaction():
        connection.execute("SET TRANSACTION READ ONLY")
        cursor = connection.cursor(name="headrace", withhold=False)
        cursor.itersize = _FETCHED_AT_ONCE
        with cursor:
            cursor.execute(query.text)
            columns = [column.name for column in cursor.description or ()]
            if query.download_file is not None:
                write_csv(job, query.download_file, columns, cursor)
                return Outcome()
            stored = stored_results(query.results, columns, cursor)
    return Outcome(store={store_as: {"last_results": stored}}, reset=(f"{store_as}.last_results",))
