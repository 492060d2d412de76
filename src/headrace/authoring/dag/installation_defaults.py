"""Defaults of DAGs and tasks that an installation may change in Airflow's configuration.

Read once, when a process that loads files starts. Where nobody has set an option, the default here counts.
"""

from __future__ import annotations

from datetime import timedelta

from headrace.authoring.dag.configuration import conf


def _text(section: str, key: str, default: str) -> str:
    return str(conf.get(section, key)) if conf.is_set(section, key) else default


def _whole(section: str, key: str, default: int) -> int:
    return int(conf.getint(section, key)) if conf.is_set(section, key) else default


def _boolean(section: str, key: str, default: bool) -> bool:
    return conf.getboolean(section, key) if conf.is_set(section, key) else default


OWNER = _text("operators", "default_owner", "airflow")
QUEUE = _text("operators", "default_queue", "default")
RETRIES = _whole("core", "default_task_retries", 0)
RETRY_DELAY = timedelta(seconds=_whole("core", "default_task_retry_delay", 300))
MAX_ACTIVE_TASKS = _whole("core", "max_active_tasks_per_dag", 16)
MAX_ACTIVE_RUNS = _whole("core", "max_active_runs_per_dag", 16)
CRON_DATA_INTERVALS = _boolean("scheduler", "create_cron_data_intervals", False)
"""Whether a cron expression means periods, with a run at the end of each, as it did in Airflow 2."""
DELTA_DATA_INTERVALS = _boolean("scheduler", "create_delta_data_intervals", False)
"""The same for a timedelta."""
CATCHUP = _boolean("scheduler", "catchup_by_default", False)
PAUSED_AT_CREATION = _boolean("core", "dags_are_paused_at_creation", False)
