"""`td_ddl>`: makes, empties, renames and drops databases and tables of Treasure Data."""

from __future__ import annotations

from typing import Any

from headrace.authoring.dig import as_list, as_text
from headrace.operators.dig.contract import Job, OperatorError, Outcome
from headrace.operators.dig.td_client import TdClient

_GONE, _THERE = (404,), (409,)


def run_td_ddl(job: Job) -> Outcome:
    """Do all that is listed: databases first, and what is dropped before what is made."""
    params = job.params.with_defaults("td")
    tables = _Tables(TdClient(job, params))

    def names(key: str) -> list[str]:
        return [as_text(name) for name in params.read(key, as_list, [])]

    for name in [*names("drop_databases"), *names("empty_databases")]:
        tables.drop_database(name)
    for name in [*names("empty_databases"), *names("create_databases")]:
        tables.create_database(name)
    for name in [*names("drop_tables"), *names("empty_tables")]:
        tables.drop(name)
    for name in [*names("empty_tables"), *names("create_tables")]:
        tables.create(name)
    for pair in params.read("rename_tables", as_list, []):
        tables.rename(pair)
    return Outcome()


class _Tables:
    def __init__(self, client: TdClient) -> None:
        self._client = client

    def create_database(self, name: str) -> None:
        self._client.ask("POST", "v3", "database", "create", name, accepted=_THERE)

    def drop_database(self, name: str) -> None:
        self._client.ask("POST", "v3", "database", "delete", name, accepted=_GONE)

    def create(self, name: str) -> None:
        self._client.ask("POST", "v3", "table", "create", *self._path(name), "log", accepted=_THERE)

    def drop(self, name: str) -> None:
        self._client.ask("POST", "v3", "table", "delete", *self._path(name), accepted=_GONE)

    def rename(self, pair: Any) -> None:
        if not isinstance(pair, dict) or set(pair) != {"from", "to"}:
            raise OperatorError("expected `rename_tables` to be a list of `{from: name, to: name}`")
        database, source = self._path(as_text(pair["from"]))
        _, target = self._path(as_text(pair["to"]))
        path = ("v3", "table", "rename", database, source, target)
        self._client.ask("POST", *path, form={"overwrite": "true"})

    def _path(self, name: str) -> tuple[str, str]:
        database, _, table = name.rpartition(".")
        return database or self._client.database, table
