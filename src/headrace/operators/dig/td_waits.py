"""`td_wait>` and `td_wait_table>`: wait until a query is true, or until a table has rows."""

from __future__ import annotations

from headrace.authoring.dig import as_integer, as_seconds
from headrace.operators.dig.contract import Job, OperatorError, Outcome, Params, PollAgain
from headrace.operators.dig.td_client import TdClient, columns_of, last_job, session_seconds, typed_rows
from headrace.operators.dig.td_queries import query_job
from headrace.operators.dig.texts import text_of

_INTERVAL_SECONDS = 30


def run_td_wait(job: Job) -> Outcome:
    """Run a query again and again until the first value of its first row is true."""
    params = job.params.with_defaults("td")
    query, time = text_of(job, params, "query"), session_seconds(params)
    return _wait_for(job, params, TdClient(job, params), query, _interval(params), time)


def run_td_wait_table(job: Job) -> Outcome:
    """Wait until a table is there and has at least so many rows."""
    params = job.params.with_defaults("td")
    client = TdClient(job, params)
    table, rows, interval = params.text("_command"), params.read("rows", as_integer, 0), _interval(params)
    database, _, name = table.rpartition(".")
    if "job_id" not in job.state:
        status, _ = client.ask("GET", "v3", "table", "show", database or client.database, name, accepted=(404,))
        if status == 404:
            raise _later(interval)
        if rows <= 0:
            return Outcome()
    mark = "`" if params.raw("engine") == "hive" else '"'
    quoted = ".".join(f"{mark}{part}{mark}" for part in table.replace(mark, "").split("."))
    query = f"SELECT count(*) >= {rows} FROM (SELECT 1 FROM {quoted} LIMIT {rows}) found"
    return _wait_for(job, params, client, query, interval)


def _wait_for(
    job: Job, params: Params, client: TdClient, query: str, interval: int, scheduled_time: int | None = None
) -> Outcome:
    found = query_job(job, params, client, query, scheduled_time)
    rows = list(typed_rows(found, client.rows(found["job_id"])))
    if len(columns_of(found)) != 1:
        raise OperatorError(f"expected the query of `{job.operator}>` to have one column, got: {columns_of(found)}")
    if not rows or not rows[0][0]:
        raise _later(interval)
    return Outcome(store={"td": last_job(found)}, reset=("td.last_job_id", "td.last_job"))


def _interval(params: Params) -> int:
    return params.read("interval", as_seconds, _INTERVAL_SECONDS)


def _later(interval: int) -> PollAgain:
    """Look again, with a new query."""
    return PollAgain(interval, {"looked": True})
