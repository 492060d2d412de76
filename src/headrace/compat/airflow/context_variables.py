"""The context of a task as names and texts, for queries and programs that want to tell who runs them."""

from __future__ import annotations

from typing import Any

from headrace.authoring.dag import Context
from headrace.authoring.dag.task_instance import context_environment

_PREFIX = "AIRFLOW_CTX_"
_NAMES = ("DAG_ID", "TASK_ID", "LOGICAL_DATE", "TRY_NUMBER", "DAG_RUN_ID", "DAG_OWNER", "DAG_EMAIL")

AIRFLOW_VAR_NAME_FORMAT_MAPPING = {
    f"AIRFLOW_CONTEXT_{name}": {"default": f"airflow.ctx.{name.lower()}", "env_var_format": f"{_PREFIX}{name}"}
    for name in _NAMES
}


def context_to_airflow_vars(context: Context, in_env_var_format: bool = False) -> dict[str, str]:
    """Who runs: `airflow.ctx.dag_id` and its like, or as names of environment variables."""
    variables: dict[str, Any] = context_environment(context)
    if in_env_var_format:
        return variables
    return {f"airflow.ctx.{name.removeprefix(_PREFIX).lower()}": value for name, value in variables.items()}
