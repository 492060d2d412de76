"""Options that have moved: an old spelling counts wherever the new one does, and the other way round."""

from __future__ import annotations

Option = tuple[str, str]

_WEBSERVER_TO_API = (
    *("base_url", "workers", "access_logfile", "expose_config", "secret_key", "enable_swagger_ui", "page_size"),
    *("grid_view_sorting_order", "log_fetch_timeout_sec", "hide_paused_dags_by_default", "default_wrap"),
    *("auto_refresh_interval", "require_confirmation_dag_change", "instance_name"),
)
_CORE_TO_DATABASE = (
    *("sql_alchemy_conn", "sql_engine_encoding", "sql_engine_collation_for_ids", "sql_alchemy_pool_enabled"),
    *("sql_alchemy_pool_size", "sql_alchemy_max_overflow", "sql_alchemy_pool_recycle", "sql_alchemy_pool_pre_ping"),
    *("sql_alchemy_schema", "sql_alchemy_connect_args", "load_default_connections", "max_db_retries"),
)
_CORE_TO_LOGGING = (
    *("base_log_folder", "remote_logging", "remote_log_conn_id", "remote_base_log_folder", "encrypt_s3_logs"),
    *("logging_level", "logging_config_class", "colored_console_log", "log_format", "simple_log_format"),
    *("task_log_reader", "log_filename_template", "dag_processor_manager_log_location"),
)
_SCHEDULER_TO_METRICS = ("statsd_on", "statsd_host", "statsd_port", "statsd_prefix", "statsd_datadog_enabled")
_SCHEDULER_TO_PARSER = (
    *("min_file_process_interval", "parsing_processes", "file_parsing_sort_mode", "max_callbacks_per_loop"),
    *("stale_dag_threshold", "print_stats_interval", "parsing_pre_import_modules"),
)

RENAMED: dict[Option, Option] = {
    **{("webserver", key): ("api", key) for key in _WEBSERVER_TO_API},
    **{("core", key): ("database", key) for key in _CORE_TO_DATABASE},
    **{("core", key): ("logging", key) for key in _CORE_TO_LOGGING},
    **{("scheduler", key): ("metrics", key) for key in _SCHEDULER_TO_METRICS},
    **{("scheduler", key): ("dag_processor", key) for key in _SCHEDULER_TO_PARSER},
    ("webserver", "web_server_host"): ("api", "host"),
    ("webserver", "web_server_port"): ("api", "port"),
    ("webserver", "web_server_worker_timeout"): ("api", "worker_timeout"),
    ("webserver", "web_server_ssl_cert"): ("api", "ssl_cert"),
    ("webserver", "web_server_ssl_key"): ("api", "ssl_key"),
    ("core", "dag_concurrency"): ("core", "max_active_tasks_per_dag"),
    ("core", "non_pooled_task_slot_count"): ("core", "default_pool_task_slot_count"),
    ("core", "dag_file_processor_timeout"): ("dag_processor", "dag_file_processor_timeout"),
    ("core", "worker_precheck"): ("celery", "worker_precheck"),
    ("core", "max_num_rendered_ti_fields_per_task"): ("core", "num_dag_runs_to_retain_rendered_fields"),
    ("scheduler", "max_threads"): ("dag_processor", "parsing_processes"),
    ("scheduler", "dag_dir_list_interval"): ("dag_processor", "refresh_interval"),
    ("scheduler", "processor_poll_interval"): ("scheduler", "scheduler_idle_sleep_time"),
    ("scheduler", "deactivate_stale_dags_interval"): ("scheduler", "parsing_cleanup_interval"),
    ("scheduler", "local_task_job_heartbeat_sec"): ("scheduler", "task_instance_heartbeat_sec"),
    ("scheduler", "scheduler_zombie_task_threshold"): ("scheduler", "task_instance_heartbeat_timeout"),
    ("scheduler", "zombie_detection_interval"): ("scheduler", "task_instance_heartbeat_timeout_detection_interval"),
    ("triggerer", "default_capacity"): ("triggerer", "capacity"),
}
"""Old spelling → new spelling."""


def spellings(section: str, key: str) -> list[Option]:
    """Every spelling of an option, the one that was asked for first, then the new one, then the old ones."""
    new = RENAMED.get((section, key), (section, key))
    old = [option for option, target in RENAMED.items() if target == new]
    return list(dict.fromkeys([(section, key), new, *old]))
