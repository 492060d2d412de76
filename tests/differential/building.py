"""From a description (plain JSON) to a DAG, by Airflow's import paths: the same file builds for Airflow and for us.

A DAG is `{"id", "parts"}`. A part is a task or a group of parts; `after` names earlier parts that it follows.

  task:  `does` is what it does: `ok`, `fail`, `skip`, `flaky` (fails in its first try) or `element`, which means: what
         its element says. `gives` is the list that it returns, `empty` makes it an EmptyOperator, `choose` (and
         `otherwise`, for elements other than `ok`) a branch, `go_on` a short circuit. `map` multiplies it over a list,
         or over the result of the part that it names. `setup` and `teardown_of` are what they say.
  group: `parts`, and `map` as for a task: then every task in it may do what the group's element says.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from airflow.exceptions import AirflowSkipException
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, TaskGroup, get_current_context, task, task_group

Description = dict[str, Any]


def build(description: Description) -> DAG:
    """The DAG that a description describes."""
    with DAG(description["id"], schedule=None, start_date=datetime(2024, 1, 1), max_active_tasks=1000) as dag:
        _Builder().add_all(description["parts"])
    return dag


class _Builder:
    def __init__(self) -> None:
        self._made: dict[str, Any] = {}
        """What stands for each part in an edge."""

    def add_all(self, parts: list[Description], element: Any = None) -> None:
        for part in parts:
            made = self._group(part, element) if "parts" in part else self._task(part, element)
            self._made[part["id"]] = made
            for earlier in part.get("after", ()):
                self._made[earlier] >> made

    def _group(self, part: Description, element: Any) -> Any:
        if "map" not in part:
            with TaskGroup(part["id"]) as group:
                self.add_all(part["parts"], element)
            return group

        @task_group(group_id=part["id"])
        def mapped(element: Any) -> None:
            self.add_all(part["parts"], element)

        return mapped.expand(element=self._elements(part))

    def _task(self, part: Description, element: Any) -> Any:
        options = {
            "task_id": part["id"],
            "trigger_rule": part.get("rule", "all_success"),
            "retries": part.get("retries", 0),
            "retry_delay": timedelta(0),
        }
        if part.get("empty"):
            return self._mark(part, EmptyOperator(**options))
        decorated = self._decorated(part, options)
        result = decorated.expand(element=self._elements(part)) if "map" in part else decorated(element)
        return self._mark(part, result)

    def _decorated(self, part: Description, options: dict[str, Any]) -> Any:
        act = _action(part)
        if "choose" in part:

            @task.branch(**options)
            def choose(element: str | None = None) -> list[str]:
                act(element)
                is_first = "otherwise" not in part or element == "ok"
                return [_full_id(self._made[one]) for one in part["choose" if is_first else "otherwise"]]

            return choose
        if "go_on" in part:

            @task.short_circuit(ignore_downstream_trigger_rules=part.get("to_the_end", True), **options)
            def go_on(element: str | None = None) -> bool:
                act(element)
                return bool(part["go_on"])

            return go_on

        @task(**options)
        def work(element: str | None = None) -> Any:
            did = act(element)
            return part.get("gives", did)

        return work

    def _elements(self, part: Description) -> Any:
        return self._made[part["map"]] if isinstance(part["map"], str) else part["map"]

    def _mark(self, part: Description, made: Any) -> Any:
        operator = getattr(made, "operator", made)
        if part.get("setup"):
            operator.as_setup()
        if "teardown_of" in part:
            setups = [getattr(self._made[one], "operator", self._made[one]) for one in part["teardown_of"]]
            operator.as_teardown(setups=setups, on_failure_fail_dagrun=part.get("fails_run", False))
        return made


def _action(part: Description) -> Callable[[str | None], str]:
    def act(element: str | None) -> str:
        does = part.get("does", "ok")
        what = (element or "ok") if does == "element" else does
        if what == "fail" or (what == "flaky" and get_current_context()["ti"].try_number == 1):
            raise ValueError(f"{part['id']} fails")
        if what == "skip":
            raise AirflowSkipException(f"{part['id']} skips")
        return "ok"

    return act


def _full_id(made: Any) -> str:
    operator = getattr(made, "operator", made)
    return str(operator.group_id if hasattr(operator, "group_id") else operator.task_id)
