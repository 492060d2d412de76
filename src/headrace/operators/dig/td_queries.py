"""`td>`, `td_run>` and `td_for_each>`: queries on Treasure Data and what becomes of their results."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from headrace.authoring.dig import as_integer, as_map, as_text, parse_parallel
from headrace.operators.dig.contract import Job, OperatorError, Outcome, Params
from headrace.operators.dig.secret_references import fill_in_secrets
from headrace.operators.dig.sql_results import stored_results, wanted_results, write_csv
from headrace.operators.dig.td_client import (
    TdClient,
    columns_of,
    connection_form,
    finished_job,
    last_job,
    session_seconds,
    typed_rows,
)
from headrace.operators.dig.texts import text_of

_ENGINES = ("presto", "trino", "hive")
_INSERT_LINE = re.compile(r"^--\s*DIGDAG_INSERT_LINE.*$", re.MULTILINE)
_TOP_COMMENTS = re.compile(r"\s*(?:--[^\n]*\n\s*)+")


def run_td(job: Job) -> Outcome:
    """Run a query of a file or of the task itself."""
    params = job.params.with_defaults("td")
    client = TdClient(job, params)
    found = query_job(job, params, client, _statement(job, params, client), session_seconds(params))
    return _outcome(job, params, client, found)


def run_td_run(job: Job) -> Outcome:
    """Run a saved query, named by its name or its number, for the session time."""
    params = job.params.with_defaults("td")
    client = TdClient(job, params)
    query, time = params.raw("_command"), session_seconds(params)

    def start(key: str) -> tuple[int, dict[str, Any]]:
        if isinstance(query, int):
            body = {"scheduled_time": f"{datetime.fromtimestamp(time, UTC):%Y-%m-%dT%H:%M:%SZ}", "domain_key": key}
            return client.ask("POST", "v4", "queries", str(query), "jobs", body=body, accepted=(409,))
        path = ("v3", "schedule", "run", params.text("_command"), str(time))
        return client.ask("POST", *path, form={"domain_key": key}, accepted=(409,))

    return _outcome(job, params, client, finished_job(job, client, start))


def run_td_for_each(job: Job) -> Outcome:
    """Repeat `_do` for each row of a query, with `${td.each.COLUMN}`."""
    params = job.params.with_defaults("td")
    client = TdClient(job, params)
    body = job.params.raw("_do")
    parallel = job.params.read("_parallel", parse_parallel, None)
    if body is None:
        raise OperatorError("parameter `_do` is required but not set")
    found = query_job(job, params, client, text_of(job, params, "query"), session_seconds(params))
    rows = stored_results("all", columns_of(found), typed_rows(found, client.rows(found["job_id"])), is_limited=False)
    subtasks: dict[str, Any] = {f"+td-for-each-{index}": _repetition(body, row) for index, row in enumerate(rows)}
    if subtasks and parallel is not None and parallel.is_parallel:
        subtasks = {"_parallel": {"limit": parallel.limit}, **subtasks}
    return Outcome(subtasks=subtasks, store={"td": last_job(found)})


def query_job(
    job: Job, params: Params, client: TdClient, statement: str, scheduled_time: int | None = None
) -> dict[str, Any]:
    """The job of a query, once it has gone well."""
    engine = _engine(params)
    pool = params.read("hive_pool_name" if engine == "hive" else "presto_pool_name", as_text, None)
    url = params.read("result_url", as_text, None)
    connection, settings = _connection(params)
    form = {
        "query": statement,
        "priority": params.read("priority", as_integer, 0),
        "retry_limit": params.read("job_retry", as_integer, 0),
        "pool_name": pool,
        "engine_version": params.read("engine_version", as_text, None),
        "result": None if url is None else fill_in_secrets(url, job.channel),
        "scheduled_time": scheduled_time,
    }

    def start(key: str) -> tuple[int, dict[str, Any]]:
        path = ("v3", "job", "issue", engine, client.database)
        target = {} if connection is None else connection_form(job, client, connection, settings)
        return client.ask("POST", *path, form={**form, **target, "domain_key": key}, accepted=(409,))

    return finished_job(job, client, start)


def _engine(params: Params) -> str:
    engine = params.read("engine", as_text, "presto")
    if engine not in _ENGINES:
        raise OperatorError(f"expected `engine` to be one of {', '.join(_ENGINES)}, got: `{engine}`")
    return engine


def _connection(params: Params) -> tuple[str | None, dict[str, Any] | None]:
    """The name of the connection that the result goes to, with settings for it."""
    connection = params.read("result_connection", as_text, None)
    settings = params.read("result_settings", as_map, None)
    if settings is not None and connection is None:
        raise OperatorError("`result_settings` is for a `result_connection`, which is not set")
    return connection, settings


def _statement(job: Job, params: Params, client: TdClient) -> str:
    text = text_of(job, params, "query").strip().rstrip(";")
    target = params.read("create_table", as_text, None), params.read("insert_into", as_text, None)
    if None not in target:
        raise OperatorError("a query has one use for its result, got: `create_table` and `insert_into`")
    table = target[0] or target[1]
    if table is None:
        return text
    is_new, is_hive = target[0] is not None, _engine(params) == "hive"
    if is_hive or not is_new:
        _ensure_table(job, client, table)
    if is_hive:
        return _inserted(f"INSERT {'OVERWRITE' if is_new else 'INTO'} TABLE {_quoted(table, '`')}", text)
    name = _quoted(table, '"')
    return _inserted(f"DROP TABLE IF EXISTS {name};\nCREATE TABLE {name} AS" if is_new else f"INSERT INTO {name}", text)


def _inserted(command: str, text: str) -> str:
    """A query behind a command, which takes the place of `-- DIGDAG_INSERT_LINE` or follows the comments at the top."""
    marked, count = _INSERT_LINE.subn(lambda _: command, text, count=1)
    if count:
        return marked
    end = match.end() if (match := _TOP_COMMENTS.match(text)) else 0
    return f"{text[:end]}{command}\n{text[end:]}"


def _ensure_table(job: Job, client: TdClient, table: str) -> None:
    if "job_id" not in job.state:
        database, _, name = table.rpartition(".")
        client.ask("POST", "v3", "table", "create", database or client.database, name, "log", accepted=(409,))


def _quoted(table: str, mark: str) -> str:
    return ".".join(mark + part.replace(mark, mark * 2) + mark for part in table.split("."))


def _outcome(job: Job, params: Params, client: TdClient, found: dict[str, Any]) -> Outcome:
    """What becomes of a result: a file, parameters, a few lines in the log."""
    wanted, target = wanted_results(params), params.read("download_file", as_text, None)
    stored, reset = last_job(found), ["td.last_job_id", "td.last_job"]
    if target is not None:
        write_csv(job, target, columns_of(found), client.rows(found["job_id"]))
    if wanted:
        rows = typed_rows(found, client.rows(found["job_id"]))
        stored["last_results"] = stored_results(wanted, columns_of(found), rows, is_limited=False)
        # Without `store_last_results`, what an earlier query has stored stays.
        reset.append("td.last_results")
    if params.boolean("preview"):
        for _, row in zip(range(20), client.rows(found["job_id"]), strict=False):
            print("\t".join(row), flush=True)
    return Outcome(store={"td": stored}, reset=tuple(reset))


def _repetition(body: Any, row: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(body, dict):
        raise OperatorError("expected parameter `_do` to be a map")
    return {**body, "_export": {**(body.get("_export") or {}), "td": {"each": row}}}
