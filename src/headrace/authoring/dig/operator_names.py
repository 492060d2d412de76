"""Which operators a `.dig` file may name, so that a typing mistake is found when the file is loaded."""

from __future__ import annotations

from headrace.definition import Place
from headrace.errors import DefinitionError, did_you_mean

_known = {"asset", "call", "echo", "fail", "for_each", "for_range", "if", "loop", "notify", "py", "sh", "wait"}

UNSUPPORTED = frozenset(
    (
        *("bq", "bq_ddl", "bq_extract", "bq_load", "ecs_task.embulk", "ecs_task.py", "ecs_task.rb", "ecs_task.sh"),
        *("embulk", "emr", "gcs_wait", "http", "http_call", "mail", "param_get", "param_set", "pg", "rb"),
        *("redshift", "redshift_load", "redshift_unload", "require", "s3_copy", "s3_delete", "s3_move", "s3_touch"),
        *("s3_wait", "snowflake", "td", "td_ddl", "td_for_each", "td_load", "td_partial_delete", "td_result_export"),
        *("td_run", "td_table_export", "td_wait", "td_wait_table"),
    )
)
"""Operators that Digdag documents and that nobody has registered here."""


def declare_operator(name: str) -> None:
    """Let files name an operator."""
    _known.add(name)


def known_operators() -> frozenset[str]:
    return frozenset(_known)


def check_operator(name: str, owner: str, place: Place) -> None:
    """Refuse an operator that nobody could run. One that is computed (`${…}`) is looked at by the task."""
    if name in _known or "${" in name:
        return
    if name in UNSUPPORTED:
        raise DefinitionError(f"{owner}: operator `{name}>` is not supported yet", file=place.file, line=place.line)
    hint = did_you_mean(f"{name}>", [f"{one}>" for one in sorted(_known | UNSUPPORTED)])
    raise DefinitionError(f"{owner}: unknown operator `{name}>`", hint=hint, file=place.file, line=place.line)
