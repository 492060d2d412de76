"""`bq_ddl>`: makes, empties and deletes datasets and tables of BigQuery."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from headrace.authoring.dig import as_list, as_text
from headrace.operators.dig.bigquery import ADDRESS, dataset_of, table_of
from headrace.operators.dig.contract import Job, OperatorError, Outcome, Params
from headrace.operators.dig.google_access import GoogleClient

_GONE, _THERE = (404,), (409,)


def run_ddl(job: Job) -> Outcome:
    """Do all that is listed: datasets first, and what is deleted before what is made."""
    params = job.params.with_defaults("bq")
    ddl = _Ddl(GoogleClient(job, "bq", ADDRESS), params.read("dataset", as_text, None))

    def entries(key: str) -> list[dict[str, Any]]:
        return [_entry(key, one) for one in params.read(key, as_list, [])]

    for entry in [*entries("delete_datasets"), *entries("empty_datasets")]:
        ddl.delete_dataset(entry)
    for entry in [*entries("empty_datasets"), *entries("create_datasets")]:
        ddl.create_dataset(entry)
    for entry in [*entries("delete_tables"), *entries("empty_tables")]:
        ddl.delete_table(entry)
    for entry in [*entries("empty_tables"), *entries("create_tables")]:
        ddl.create_table(entry)
    return Outcome()


class _Ddl:
    def __init__(self, client: GoogleClient, dataset: str | None) -> None:
        self._client = client
        self._dataset = dataset

    def create_dataset(self, entry: dict[str, Any]) -> None:
        reference = dataset_of(self._client, entry["id"])
        body = {**_rest(entry), "datasetReference": reference}
        self._client.ask("POST", f"{_project(reference)}/datasets", body, accepted=_THERE)

    def delete_dataset(self, entry: dict[str, Any]) -> None:
        reference = dataset_of(self._client, entry["id"])
        path = f"{_project(reference)}/datasets/{quote(reference['datasetId'])}?deleteContents=true"
        self._client.ask("DELETE", path, accepted=_GONE)

    def create_table(self, entry: dict[str, Any]) -> None:
        reference = table_of(self._client, entry["id"], self._dataset)
        body = {**_rest(entry), "tableReference": reference}
        self._client.ask("POST", f"{_tables(reference)}", body, accepted=_THERE)

    def delete_table(self, entry: dict[str, Any]) -> None:
        reference = table_of(self._client, entry["id"], self._dataset)
        self._client.ask("DELETE", f"{_tables(reference)}/{quote(reference['tableId'])}", accepted=_GONE)


def _entry(key: str, value: Any) -> dict[str, Any]:
    """A name, or a map with an `id` and whatever else BigQuery wants to know."""
    if isinstance(value, dict):
        return {**value, "id": Params(value, "bq_ddl").text("id")}
    try:
        return {"id": as_text(value)}
    except ValueError as error:
        raise OperatorError(f"expected the entries of `{key}` {error}") from None


def _rest(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key not in ("id", "project", "dataset")}


def _project(reference: dict[str, str]) -> str:
    return f"/bigquery/v2/projects/{quote(reference['projectId'])}"


def _tables(reference: dict[str, str]) -> str:
    return f"{_project(reference)}/datasets/{quote(reference['datasetId'])}/tables"
