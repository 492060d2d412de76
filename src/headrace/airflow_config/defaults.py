"""Airflow's own defaults, out of the table beside this file."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_TABLE = Path(__file__).with_name("defaults.toml")
_HOME = "{AIRFLOW_HOME}"

WITHOUT_DEFAULT = frozenset(
    (
        *(("api", key) for key in ("base_url", "instance_name", "log_config", "theme", "ssl_ca_file")),
        *(("api_auth", key) for key in ("jwt_audience", "jwt_private_key_path", "jwt_algorithm", "jwt_kid")),
        *(("api_auth", key) for key in ("trusted_jwks_url", "jwt_issuer")),
        *(("core", key) for key in ("execution_api_server_url", "mp_start_method", "asset_manager_class")),
        *(("core", key) for key in ("asset_manager_kwargs", "simple_auth_manager_passwords_file")),
        *(("database", key) for key in ("sql_alchemy_conn_async", "sql_alchemy_engine_args")),
        *(("database", key) for key in ("sql_alchemy_connect_args", "sql_engine_collation_for_ids")),
        *(("database", key) for key in ("sql_alchemy_session_maker", "external_db_managers")),
        *(("dag_processor", "dag_bundle_storage_path"), ("logging", "namespace_levels")),
        *(("logging", "interleave_timestamp_parser"), ("metrics", "statsd_custom_client_path")),
        *(("email", key) for key in ("subject_template", "html_content_template", "from_email")),
        ("sentry", "before_send"),
    )
)
"""Options that exist and have no default."""


@cache
def _defaults() -> dict[str, dict[str, str]]:
    # Every task process has this module, and few ask for an option.
    import tomllib

    return tomllib.loads(_TABLE.read_text(encoding="utf-8"))


def default_of(section: str, key: str, home: Path) -> str | None:
    """What Airflow takes if nobody sets the option; None if it has no default."""
    value = _defaults().get(section, {}).get(key)
    return None if value is None else value.replace(_HOME, str(home))


def is_core_section(section: str) -> bool:
    """Whether the section is Airflow's own, and not one of a provider."""
    return section in _defaults() or section == "webserver"


def known_options(section: str) -> list[str]:
    """Every option of one of Airflow's own sections."""
    return sorted({*_defaults().get(section, {}), *(key for other, key in WITHOUT_DEFAULT if other == section)})
