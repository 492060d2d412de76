"""Treasure Data over its REST interface: requests, and jobs that are waited for without holding a process."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from datetime import datetime
from tempfile import TemporaryFile
from typing import Any
from urllib.parse import quote, urlencode

from headrace.authoring.dig import as_text
from headrace.operators.dig.contract import Job, OperatorError, Params
from headrace.operators.dig.poll_intervals import poll_again
from headrace.operators.dig.secret_references import filled_in
from headrace.operators.dig.service_options import ServiceOptions
from headrace.operators.dig.web_client import Unreachable, WebRequest, WebResponse, send

_ENDPOINT = "api.treasuredata.com"
_JOB = "job_id"
_WAITING = ("queued", "booting", "running")


class TdClient:
    """Asks with the project's secret `td.apikey`."""

    def __init__(self, job: Job, params: Params) -> None:
        options = ServiceOptions(job, params, "td")
        self._job = job
        endpoint = options.read("endpoint", as_text, _ENDPOINT)
        scheme = "https" if options.boolean("use_ssl", True) else "http"
        self._address = endpoint.rstrip("/") if "://" in endpoint else f"{scheme}://{endpoint.rstrip('/')}"
        self._key = job.required_secret("td.apikey")
        self._database = options.read("database", as_text, None)

    @property
    def database(self) -> str:
        if self._database is None:
            raise OperatorError("parameter `database` or secret `td.database` is required but not set")
        return self._database

    def ask(
        self,
        method: str,
        *path: str,
        form: dict[str, Any] | None = None,
        body: Any = None,
        query: dict[str, str] | None = None,
        accepted: tuple[int, ...] = (),
    ) -> tuple[int, dict[str, Any]]:
        """Status and answer. One that is neither good nor accepted is a failure; one that may pass is waited for."""
        response = self._send(method, path, form, body, query)
        answer = _json(response)
        if response.status >= 400 and response.status not in accepted:
            reason = answer.get("message") or answer.get("error") or "no reason"
            raise OperatorError(f"{method} {_joined(path)} was answered with status {response.status}: {reason}")
        return response.status, answer

    def connection_id(self, name: str) -> str:
        """The number of a connection that TD knows by this name."""
        _, found = self.ask("GET", "v3", "connections", "lookup", query={"name": name})
        return str(found["id"])

    def rows(self, job_id: str) -> Iterator[list[Any]]:
        """The rows of a job's result, one after the other."""
        with TemporaryFile() as file:
            url = f"{self._address}{_joined(('v3', 'job', 'result', job_id))}?format=csv"
            response = send(WebRequest(url, headers=self._headers(), timeout_seconds=600), target=file)
            if response.status != 200:
                raise OperatorError(f"the result of job {job_id} was answered with status {response.status}")
            file.seek(0)
            with io.TextIOWrapper(file, encoding="utf-8", newline="") as text:
                yield from csv.reader(text)

    def _send(
        self, method: str, path: tuple[str, ...], form: dict[str, Any] | None, body: Any, query: dict[str, str] | None
    ) -> WebResponse:
        headers, content = self._headers(), None
        url = self._address + _joined(path) + (f"?{urlencode(query)}" if query else "")
        if body is not None:
            content, headers["Content-Type"] = json.dumps(body).encode(), "application/json"
        elif method == "POST":
            fields = {key: value for key, value in (form or {}).items() if value is not None}
            content, headers["Content-Type"] = urlencode(fields).encode(), "application/x-www-form-urlencoded"
        try:
            response = send(WebRequest(url, method, headers, content, timeout_seconds=60))
        except Unreachable as error:
            print(f"{error}; trying again", flush=True)
            raise poll_again(self._job, 1, 30) from None
        if response.status >= 500 or response.status == 429:
            print(f"{method} {_joined(path)} was answered with status {response.status}; trying again", flush=True)
            raise poll_again(self._job, 1, 30)
        return response

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"TD1 {self._key}", "Accept": "application/json"}


def finished_job(job: Job, client: TdClient, start: Callable[[str], tuple[int, dict[str, Any]]]) -> dict[str, Any]:
    """The job that `start` begins, once it has gone well. `start` gets a key under which TD begins a job only once."""
    job_id = job.state.get(_JOB)
    if job_id is None:
        job_id = _started(start(f"headrace-{job.identity}-{job.try_number}"))
        print(f"started job {job_id}", flush=True)
        raise poll_again(job, 1, 30, **{_JOB: job_id})
    _, found = client.ask("GET", "v3", "job", "show", job_id)
    status = found.get("status")
    if status in _WAITING:
        raise poll_again(job, 1, 30)
    if status != "success":
        words = (found.get("debug") or {}).get("stderr") or (found.get("debug") or {}).get("cmdout") or ""
        raise OperatorError(f"TD job {job_id} ended as {status}", type_name="TdJobFailed", detail=words[-2000:])
    return {**found, _JOB: job_id}


def columns_of(found: dict[str, Any]) -> list[str]:
    """The names of a result's columns."""
    schema = found.get("hive_result_schema") or "[]"
    parsed = json.loads(schema) if isinstance(schema, str) else schema
    return [str(column[0]) for column in parsed]


def typed_rows(found: dict[str, Any], rows: Iterator[list[Any]]) -> Iterator[list[Any]]:
    """Rows as JSON has them; they arrive as texts."""
    schema = found.get("hive_result_schema") or "[]"
    kinds = [str(column[1]) for column in (json.loads(schema) if isinstance(schema, str) else schema)]
    for row in rows:
        yield [_typed(value, kind) for value, kind in zip(row, kinds, strict=True)]


def connection_form(job: Job, client: TdClient, name: str, settings: dict[str, Any] | None) -> dict[str, Any]:
    """The part of a request that sends a job's result to a connection."""
    form: dict[str, Any] = {"result_connection_id": client.connection_id(name)}
    if settings is not None:
        form["result_connection_settings"] = json.dumps(filled_in(settings, job.channel), ensure_ascii=False)
    return form


def session_seconds(params: Params) -> int:
    """The session time, which TD's functions know as the scheduled time."""
    return int(datetime.fromisoformat(params.text("session_time")).timestamp())


def last_job(found: dict[str, Any]) -> dict[str, Any]:
    """What a job leaves for the tasks that follow."""
    job_id = found[_JOB]
    return {"last_job_id": job_id, "last_job": {"id": job_id, "num_records": found.get("num_records")}}


def _started(answer: tuple[int, dict[str, Any]]) -> str:
    status, found = answer
    if status == 409:
        # An earlier call has started it, and died before it could say so.
        return str(found.get("details", {}).get("conflicts_with"))
    jobs = found.get("jobs") or [found]
    return str(jobs[0].get(_JOB) or jobs[0].get("job") or jobs[0].get("id"))


def _typed(value: str, kind: str) -> Any:
    if kind in ("int", "bigint", "long", "smallint", "tinyint", "integer"):
        return int(value) if value else None
    if kind in ("double", "float", "real"):
        return float(value) if value else None
    if kind == "boolean":
        return value.lower() == "true" if value else None
    return value


def _joined(path: tuple[str, ...]) -> str:
    return "/" + "/".join(quote(part, safe="") for part in path)


def _json(response: WebResponse) -> dict[str, Any]:
    try:
        found = json.loads(response.body) if response.body else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
