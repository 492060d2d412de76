"""The `redshift>` operator: queries on Amazon Redshift, which speaks like PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.operators.dig.contract import Job, Outcome, Params
from headrace.operators.dig.postgres import connect, connection_options, status_options
from headrace.operators.dig.service_options import ServiceOptions
from headrace.operators.dig.sql_query import read_query, run_query
from headrace.operators.dig.sql_transactions import TablePerStatement
from headrace.operators.dig.texts import text_of

_PORT = 5439


def run_redshift(job: Job) -> Outcome:
    """Run a query of a file or of the task itself."""
    params = job.params.with_defaults("redshift")
    query = read_query(params, text_of(job, params, "query"))
    return run_query(job, query, connector(job, params), status_of(params), "redshift")


def connector(job: Job, params: Params) -> Callable[[], Any]:
    """What connects to the cluster that the secrets `aws.redshift.*` and the parameters name."""
    options = connection_options(job, params, ServiceOptions(job, params, "aws.redshift"), _PORT)
    return lambda: connect(options)


def status_of(params: Params) -> TablePerStatement | None:
    is_strict = params.boolean("strict_transaction", True)
    return TablePerStatement(*status_options(params)) if is_strict else None
