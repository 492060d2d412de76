"""Import paths of Airflow 1 and 2 that Airflow 3 has no more, and where their contents are now: for error messages."""

from __future__ import annotations

_PROVIDERS = "airflow.providers"

MOVED = {
    "airflow.operators.docker_operator": f"{_PROVIDERS}.docker.operators.docker",
    "airflow.operators.hive_operator": f"{_PROVIDERS}.apache.hive.operators.hive",
    "airflow.operators.http_operator": f"{_PROVIDERS}.http.operators.http",
    "airflow.operators.jdbc_operator": f"{_PROVIDERS}.common.sql.operators.sql",
    "airflow.operators.mssql_operator": f"{_PROVIDERS}.common.sql.operators.sql",
    "airflow.operators.mysql_operator": f"{_PROVIDERS}.common.sql.operators.sql",
    "airflow.operators.oracle_operator": f"{_PROVIDERS}.common.sql.operators.sql",
    "airflow.operators.postgres_operator": f"{_PROVIDERS}.common.sql.operators.sql",
    "airflow.operators.slack_operator": f"{_PROVIDERS}.slack.operators.slack",
    "airflow.operators.sql": f"{_PROVIDERS}.common.sql.operators.sql",
    "airflow.operators.sqlite_operator": f"{_PROVIDERS}.common.sql.operators.sql",
    "airflow.operators.s3_to_redshift_operator": f"{_PROVIDERS}.amazon.aws.transfers.s3_to_redshift",
    "airflow.hooks.S3_hook": f"{_PROVIDERS}.amazon.aws.hooks.s3",
    "airflow.hooks.dbapi": f"{_PROVIDERS}.common.sql.hooks.sql",
    "airflow.hooks.dbapi_hook": f"{_PROVIDERS}.common.sql.hooks.sql",
    "airflow.hooks.http_hook": f"{_PROVIDERS}.http.hooks.http",
    "airflow.hooks.mssql_hook": f"{_PROVIDERS}.microsoft.mssql.hooks.mssql",
    "airflow.hooks.mysql_hook": f"{_PROVIDERS}.mysql.hooks.mysql",
    "airflow.hooks.postgres_hook": f"{_PROVIDERS}.postgres.hooks.postgres",
    "airflow.hooks.slack_hook": f"{_PROVIDERS}.slack.hooks.slack",
    "airflow.hooks.sqlite_hook": f"{_PROVIDERS}.sqlite.hooks.sqlite",
    "airflow.sensors.http_sensor": f"{_PROVIDERS}.http.sensors.http",
    "airflow.sensors.s3_key_sensor": f"{_PROVIDERS}.amazon.aws.sensors.s3",
    "airflow.sensors.sql": f"{_PROVIDERS}.common.sql.sensors.sql",
    "airflow.sensors.sql_sensor": f"{_PROVIDERS}.common.sql.sensors.sql",
}
_GONE = {
    "airflow.operators.subdag": "Airflow 3 has no sub-DAGs any more; task groups take their place",
    "airflow.operators.subdag_operator": "Airflow 3 has no sub-DAGs any more; task groups take their place",
    "airflow.contrib": "Airflow 2 has moved what was in there to `airflow.providers`, in packages of their own",
}


def advice_about(path: str) -> str | None:
    """Where the contents of an old module are now; None if it is none."""
    return f"Airflow has moved it to `{MOVED[path]}`" if path in MOVED else _GONE.get(path)
