"""`bq>`, `bq_load>` and `bq_extract>`: jobs of BigQuery, which are waited for without holding a process."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from headrace.authoring.dig import as_text
from headrace.operators.dig.contract import Job, OperatorError, Outcome, Params
from headrace.operators.dig.google_access import GoogleClient
from headrace.operators.dig.poll_intervals import poll_again
from headrace.operators.dig.texts import text_of

ADDRESS = "https://bigquery.googleapis.com"
_JOB = "job_id"
_QUERY = (
    *("create_disposition", "write_disposition", "priority", "use_query_cache", "allow_large_results"),
    *("flatten_results", "maximum_billing_tier", "table_definitions"),
)
_LOAD = (
    *("source_format", "field_delimiter", "create_disposition", "write_disposition", "skip_leading_rows", "encoding"),
    *("quote", "max_bad_records", "allow_quoted_newlines", "allow_jagged_rows", "ignore_unknown_values"),
    *("projection_fields", "autodetect", "schema_update_options", "schema"),
)
_EXTRACT = ("destination_format", "field_delimiter", "print_header", "compression")


def run_query(job: Job) -> Outcome:
    """Run a query of a file or of the task itself."""
    params = job.params.with_defaults("bq")
    client = GoogleClient(job, "bq", ADDRESS)
    query: dict[str, Any] = {
        "query": text_of(job, params, "query"),
        "useLegacySql": params.boolean("use_legacy_sql"),
        **_options(params, _QUERY),
    }
    dataset = params.read("dataset", as_text, None)
    if dataset is not None:
        query["defaultDataset"] = dataset_of(client, dataset)
    target = params.read("destination_table", as_text, None)
    if target is not None:
        query["destinationTable"] = table_of(client, target, dataset)
    return _finished(job, params, client, {"query": query})


def run_load(job: Job) -> Outcome:
    """Load a table from files in Google Cloud Storage."""
    params = job.params.with_defaults("bq")
    client = GoogleClient(job, "bq", ADDRESS)
    target = table_of(client, params.text("destination_table"), params.read("dataset", as_text, None))
    load = {"sourceUris": _listed(params.raw("_command")), "destinationTable": target, **_options(params, _LOAD)}
    return _finished(job, params, client, {"load": load})


def run_extract(job: Job) -> Outcome:
    """Write a table into files in Google Cloud Storage."""
    params = job.params.with_defaults("bq")
    client = GoogleClient(job, "bq", ADDRESS)
    source = table_of(client, params.text("_command"), params.read("dataset", as_text, None))
    places = _listed(params.raw("destination"))
    extract = {"sourceTable": source, "destinationUris": places, **_options(params, _EXTRACT)}
    return _finished(job, params, client, {"extract": extract})


def dataset_of(client: GoogleClient, name: str) -> dict[str, str]:
    """`dataset` or `project:dataset`."""
    project, _, dataset = name.rpartition(":")
    return {"projectId": project or client.project, "datasetId": dataset}


def table_of(client: GoogleClient, name: str, dataset: str | None) -> dict[str, str]:
    """`table`, `dataset.table` or `project:dataset.table`."""
    front, _, table = name.rpartition(".")
    if not (front or dataset) or not table:
        raise OperatorError(f"table `{name}` is in no dataset: write `dataset.table`, or set `dataset`")
    return {**dataset_of(client, front or dataset or ""), "tableId": table}


def _finished(job: Job, params: Params, client: GoogleClient, configuration: dict[str, Any]) -> Outcome:
    """Start the job, or look after the one that was started, until it has ended."""
    location = params.read("location", as_text, None)
    jobs = f"/bigquery/v2/projects/{quote(client.project)}/jobs"
    job_id = f"headrace_{job.identity}_{job.try_number}"
    if _JOB not in job.state:
        reference = {"projectId": client.project, "jobId": job_id, **({"location": location} if location else {})}
        # 409: an earlier call has started it, and died before it could say so.
        client.ask("POST", jobs, {"jobReference": reference, "configuration": configuration}, accepted=(409,))
        print(f"started job {job_id}", flush=True)
        raise poll_again(job, 1, 30, **{_JOB: job_id})
    where = f"?location={quote(location)}" if location else ""
    _, found = client.ask("GET", f"{jobs}/{quote(job.state[_JOB])}{where}")
    status = found.get("status", {})
    if status.get("state") != "DONE":
        raise poll_again(job, 1, 30)
    if status.get("errorResult"):
        words = "\n".join(str(one.get("message")) for one in status.get("errors", ()))
        message = f"BigQuery job {job.state[_JOB]} failed: {status['errorResult'].get('message')}"
        raise OperatorError(message, type_name="BigQueryJobFailed", detail=words)
    return Outcome(store={"bq": {"last_job_id": job.state[_JOB], "last_jobid": job.state[_JOB]}})


def _options(params: Params, names: tuple[str, ...]) -> dict[str, Any]:
    """Options as Google calls them: `write_disposition` is `writeDisposition`."""
    found = {name: params.raw(name) for name in names}
    return {_camel(name): value for name, value in found.items() if value is not None}


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(part.capitalize() for part in others)


def _listed(value: Any) -> list[str]:
    if value is None:
        raise OperatorError("expected one address like `gs://bucket/file` or a list of them, got nothing")
    return [str(one) for one in (value if isinstance(value, list) else [value])]
