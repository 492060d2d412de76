"""Airflow's options that mean a setting of ours, and what to say about those that mean nothing here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from headrace.airflow_config.defaults import default_of, is_core_section, known_options
from headrace.airflow_config.reading import AirflowOptions, Given
from headrace.airflow_config.renamed import RENAMED
from headrace.errors import SettingsError, nearest

_TRUE = frozenset(("t", "true", "1", "y", "yes", "on"))
_FALSE = frozenset(("f", "false", "0", "n", "no", "off"))
_OUR_EXECUTORS = ("LocalExecutor", "SequentialExecutor")


class Alias(NamedTuple):
    """One of our settings with the value that an option of Airflow's gives it."""

    setting: str
    value: Any
    given: Given


def _number(text: str) -> float:
    return float(text)


def _positive_number(text: str) -> float | None:
    """Airflow's 0 for "as you think best" is our None."""
    return float(text) or None


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def as_boolean(text: str) -> bool:
    """Every spelling of true and false that Airflow knows. ValueError for others."""
    lowered = text.split("#", 1)[0].strip().lower()
    if lowered in _TRUE or lowered in _FALSE:
        return lowered in _TRUE
    raise ValueError(text)


_ALIASES: dict[tuple[str, str], tuple[str, Callable[[str], Any]]] = {
    ("core", "dags_folder"): ("projects.dags", str),
    ("core", "parallelism"): ("agent.slots", int),
    ("core", "fernet_key"): ("secrets.keys", _words),
    ("core", "default_pool_task_slot_count"): ("limits.default_pool_slots", int),
    ("core", "dagbag_import_timeout"): ("parser.timeout_seconds", _number),
    ("core", "killed_task_cleanup_time"): ("agent.kill_grace_seconds", _number),
    ("core", "check_slas"): ("scheduler.check_slas", as_boolean),
    ("core", "sensitive_var_conn_names"): ("secrets.sensitive_names", _words),
    ("core", "hide_sensitive_var_conn_fields"): ("secrets.hide_sensitive", as_boolean),
    ("logging", "base_log_folder"): ("logs_dir", str),
    ("logging", "min_length_masked_secret"): ("secrets.shortest_masked", int),
    ("dag_processor", "parsing_processes"): ("parser.processes", int),
    ("scheduler", "scheduler_idle_sleep_time"): ("scheduler.poll_seconds", _number),
    ("scheduler", "max_dagruns_to_create_per_loop"): ("scheduler.max_runs_per_tick", int),
    ("scheduler", "task_instance_heartbeat_sec"): ("agent.renew_seconds", _positive_number),
    ("scheduler", "task_instance_heartbeat_timeout"): ("agent.lease_seconds", _number),
    ("scheduler", "task_instance_heartbeat_timeout_detection_interval"): ("scheduler.rescue_seconds", _number),
}

READ_BY_USER_CODE = frozenset(
    (
        *(("core", key) for key in ("xcom_backend", "load_examples", "unit_test_mode", "default_timezone")),
        *(("core", key) for key in ("default_task_retries", "default_task_retry_delay", "max_active_tasks_per_dag")),
        *(("core", key) for key in ("max_active_runs_per_dag", "dags_are_paused_at_creation", "internal_api_url")),
        *(("core", "allowed_deserialization_classes"), ("core", "allowed_deserialization_classes_regexp")),
        *(("core", "dbapihook_resolve_target_fields"), ("scheduler", "catchup_by_default")),
        ("workers", "secrets_backend"),
        *(("workers", "secrets_backend_kwargs"), ("api", "base_url"), ("webserver", "base_url")),
    )
)
_READ_SECTIONS = frozenset(("operators", "sensors", "email", "smtp", "secrets", "sentry", "lineage", "kerberos"))
"""Options that task processes and DAG files read themselves, so that they have their effect there."""

_ADVICE = {
    ("database", "sql_alchemy_conn"): "it names Airflow's own database; set `store` for ours",
    ("core", "executor"): "tasks run in local processes",
}


def aliased_settings(options: AirflowOptions) -> Iterator[Alias]:
    """Our settings, by name, that options of Airflow's stand for. SettingsError for a value of another type."""
    for (section, key), (setting, convert) in _ALIASES.items():
        given = options.find(section, key)
        if given is None or not given.value.strip():
            continue
        yield Alias(setting, _converted(given, convert), given)


_TYPED: dict[tuple[str, str], Callable[[str], Any]] = {
    **{("core", key): int for key in ("default_task_retries", "default_task_retry_delay")},
    **{("core", key): int for key in ("max_active_tasks_per_dag", "max_active_runs_per_dag")},
    ("core", "dags_are_paused_at_creation"): as_boolean,
    ("scheduler", "catchup_by_default"): as_boolean,
}
"""Options that every process which loads files reads when it starts: what is wrong with them is said before that."""


def check_read_options(options: AirflowOptions) -> None:
    """SettingsError for an option of a wrong type that DAG files take their defaults from."""
    for (section, key), convert in _TYPED.items():
        given = options.find(section, key)
        if given is not None:
            _converted(given, convert)


def _converted(given: Given, convert: Callable[[str], Any]) -> Any:
    try:
        return convert(given.value.strip())
    except ValueError:
        expected = {int: "a whole number", as_boolean: "true or false"}.get(convert, "a number")
        raise SettingsError(
            f"expected `{given.label}` to be {expected}, got: `{given.value}`", file=given.file
        ) from None


def alias_names() -> dict[str, str]:
    """Our settings by the options of Airflow's that stand for them: `core.parallelism` → `agent.slots`."""
    return {f"{section}.{key}": setting for (section, key), (setting, _) in _ALIASES.items()}


def notices(options: AirflowOptions) -> list[str]:
    """A sentence for each option that is set, has no effect here, and is not at Airflow's default anyway."""
    return [sentence for given in options.everything() if (sentence := _notice(given, options)) is not None]


def _notice(given: Given, options: AirflowOptions) -> str | None:
    section, key = RENAMED.get((given.section, given.key), (given.section, given.key))
    plain = key.removesuffix("_cmd").removesuffix("_secret")
    if not is_core_section(section) or (section, plain) in _ALIASES or _is_read(section, plain):
        return None
    if (section, key) == ("core", "executor") and given.value.rpartition(".")[2] in _OUR_EXECUTORS:
        return None
    if given.value == default_of(section, key, options.home):
        return None
    if advice := _ADVICE.get((section, plain)):
        return f"`{given.label}` has no effect: {advice}"
    known = known_options(section)
    match = None if plain in known else nearest(plain, known)
    return f"`{given.label}` has no effect" + (f", did you mean `{section}.{match}`?" if match else "")


def _is_read(section: str, key: str) -> bool:
    return section in _READ_SECTIONS or (section, key) in READ_BY_USER_CODE
