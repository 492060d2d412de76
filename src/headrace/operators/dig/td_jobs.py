"""`td_load>`, `td_table_export>` and `td_result_export>`: Treasure Data's jobs that move data."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from headrace.authoring.dig import as_map, as_text
from headrace.operators.dig.aws_signing import keys_for
from headrace.operators.dig.contract import Job, OperatorError, Outcome, Params
from headrace.operators.dig.secret_references import filled_in
from headrace.operators.dig.td_client import TdClient, connection_form, finished_job, last_job, session_seconds
from headrace.operators.dig.texts import rendered_file

_FILES = (".yml", ".yaml")


def run_td_load(job: Job) -> Outcome:
    """Load data by a configuration, which is a file or `config`, or by a session that TD knows by name."""
    params = job.params.with_defaults("td")
    client = TdClient(job, params)
    name = params.read("_command", as_text, None)
    session = _session(params, name)
    if session is not None:
        path: tuple[str, ...] = ("v3", "bulk_loads", session, "jobs")
        body: dict[str, Any] = {"scheduled_time": str(session_seconds(params))}
    else:
        given, _, table = params.text("table").rpartition(".")
        database = given or client.database
        path = ("v3", "job", "issue", "bulkload", database)
        body = {"config": _load_config(job, params, name), "database": database, "table": table}

    def start(key: str) -> tuple[int, dict[str, Any]]:
        return client.ask("POST", *path, body={**body, "domain_key": key}, accepted=(409,))

    return _outcome(finished_job(job, client, start))


def run_td_table_export(job: Job) -> Outcome:
    """Write a table, or a part of it by time, into S3."""
    params = job.params.with_defaults("td")
    client = TdClient(job, params)
    table = params.read("_command", as_text, None) or params.text("table")
    keys = keys_for(job, "s3")
    form = {
        "storage_type": "s3",
        "from": _seconds(params, "from"),
        "to": _seconds(params, "to"),
        "file_format": params.read("file_format", as_text, "jsonl.gz"),
        "bucket": params.text("s3_bucket"),
        "file_prefix": params.text("s3_path_prefix"),
        "access_key_id": keys.access_key_id,
        "secret_access_key": keys.secret_access_key,
    }

    def start(key: str) -> tuple[int, dict[str, Any]]:
        path = ("v3", "export", "run", client.database, table)
        return client.ask("POST", *path, form={**form, "domain_key": key}, accepted=(409,))

    return _outcome(finished_job(job, client, start))


def run_td_result_export(job: Job) -> Outcome:
    """Send the result of an earlier job to a connection."""
    params = job.params.with_defaults("td")
    client = TdClient(job, params)
    source = params.text("job_id")
    connection, settings = params.text("result_connection"), params.read("result_settings", as_map)

    def start(key: str) -> tuple[int, dict[str, Any]]:
        form = {**connection_form(job, client, connection, settings), "domain_key": key}
        return client.ask("POST", "v3", "job", "result_export", source, form=form, accepted=(409,))

    return _outcome(finished_job(job, client, start))


def _session(params: Params, name: str | None) -> str | None:
    """The name of the session that is to load: what the operator names if that is no file, or `name`."""
    if name is not None:
        return None if Path(name).suffix in _FILES else name
    return params.read("name", as_text, None) if params.raw("config") is None else None


def _load_config(job: Job, params: Params, name: str | None) -> Any:
    if name is None:
        return filled_in(params.read("config", as_map), job.channel)
    try:
        config = yaml.safe_load(rendered_file(job, name))
    except yaml.YAMLError as error:
        raise OperatorError(f"`{name}` is not valid YAML: {error}") from None
    return filled_in(config, job.channel)


def _seconds(params: Params, key: str) -> int:
    """A time as seconds since 1970, given so or as ISO 8601."""
    text = params.text(key)
    try:
        return int(text) if text.isdigit() else int(datetime.fromisoformat(text).timestamp())
    except ValueError:
        raise OperatorError(f"expected `{key}` to be a time like `2026-02-03T00:00:00+00:00`, got: `{text}`") from None


def _outcome(found: dict[str, Any]) -> Outcome:
    return Outcome(store={"td": last_job(found)}, reset=("td.last_job_id", "td.last_job"))
