"""Which provider packages of Airflow there are, and what they import without saying so."""

from __future__ import annotations

PREFIX = "apache-airflow-providers-"
AIRFLOW = ("apache-airflow", "apache-airflow-core", "apache-airflow-task-sdk")
"""What every provider requires and what we take the place of."""

PROVIDERS = tuple(
    """
    airbyte akeyless alibaba amazon apache-cassandra apache-drill apache-druid apache-flink apache-hdfs apache-hive
    apache-iceberg apache-impala apache-kafka apache-kylin apache-livy apache-pig apache-pinot apache-spark
    apache-tinkerpop apprise arangodb asana atlassian-jira celery clickhousedb cloudant cncf-kubernetes cohere common-ai
    common-compat common-io common-messaging common-sql databricks datadog dbt-cloud dingding discord docker edge3
    elasticsearch exasol fab facebook ftp git github google grpc hashicorp http imap influxdb informatica jdbc jenkins
    keycloak microsoft-azure microsoft-mssql microsoft-psrp microsoft-winrm mongo mysql neo4j odbc openai openfaas
    openlineage opensearch opsgenie oracle pagerduty papermill pgvector pinecone postgres presto qdrant redis
    salesforce samba segment sendgrid sftp singularity slack smtp snowflake sqlite ssh standard tableau telegram
    teradata trino vertica vespa weaviate yandex ydb zendesk
    """.split()
)

_FOR_ALL = ("deprecated", "lazy-object-proxy", "packaging", "python-dateutil", "tenacity")
"""Small libraries that Airflow brings, so that providers import them without requiring them."""

_FOR_SOME = {
    "amazon": ("python-slugify", "pytz", "structlog"),
    "cncf-kubernetes": ("dill", "python-slugify"),
    "common-io": ("fsspec",),
    "common-sql": ("tabulate",),
    "docker": ("dill",),
    "google": ("python-slugify", "pytz"),
    "slack": ("tabulate",),
}


def unsaid_requirements(providers: set[str]) -> tuple[str, ...]:
    """What these providers need although they do not say so."""
    some = {one for provider in providers for one in _FOR_SOME.get(provider, ())}
    return (*_FOR_ALL, *sorted(some))
