"""Connections: how to reach other systems, and the hooks that know how to talk to them."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from headrace.authoring.dag.configuration import import_string, provider_infos
from headrace.authoring.dag.connection_forms import EXTRA_KEY, FIELDS, checked_fields, fields_of_uri, uri_of
from headrace.authoring.dag.exceptions import AirflowException, AirflowNotFoundException
from headrace.authoring.dag.masking import mask_secret
from headrace.authoring.dag.secrets_backends import find_connection
from headrace.errors import did_you_mean

log = logging.getLogger(__name__)


class Connection:
    """How to reach another system."""

    EXTRA_KEY = EXTRA_KEY

    def __init__(
        self,
        conn_id: str | None = None,
        conn_type: str | None = None,
        description: str | None = None,
        host: str | None = None,
        login: str | None = None,
        password: str | None = None,
        schema: str | None = None,
        port: int | None = None,
        extra: str | Mapping[str, Any] | None = None,
        uri: str | None = None,
    ) -> None:
        given = (conn_type, description, host, login, password, schema, port, extra)
        if uri is not None and any(value is not None for value in given):
            raise AirflowException("a connection is given either as a URI or by its parts")
        fields = fields_of_uri(uri) if uri is not None else checked_fields(dict(zip(FIELDS, given, strict=True)))
        self.conn_id = conn_id
        self.conn_type: str | None = fields.get("conn_type")
        self.description = fields.get("description")
        self.host: str | None = fields.get("host")
        self.login: str | None = fields.get("login")
        self.password: str | None = fields.get("password")
        self.schema: str | None = fields.get("schema")
        self.port: int | None = fields.get("port")
        self.extra: str | None = fields.get("extra")
        self.id = None
        self._mask()

    def _mask(self) -> None:
        """From now on logs show its secrets no more."""
        mask_secret(self.password)
        if self.extra:
            mask_secret(self.extra, "")

    @classmethod
    def get(cls, conn_id: str) -> Connection:
        """The connection of that name; AirflowNotFoundException if there is none."""
        found = find_connection(conn_id)
        if found is None:
            raise AirflowNotFoundException(f"there is no connection `{conn_id}`")
        if not isinstance(found, Connection):
            return cls(**{**found, "conn_id": conn_id})
        # A backend may have made it before there was a log to keep it out of.
        found._mask()
        return found

    get_connection_from_secrets = get

    @classmethod
    def from_uri(cls, uri: str, conn_id: str | None = None) -> Connection:
        return cls(conn_id=conn_id, uri=uri)

    @classmethod
    def from_json(cls, value: str | Mapping[str, Any], conn_id: str | None = None) -> Connection:
        """A connection out of JSON, whose `extra` may be an object or text."""
        fields = json.loads(value) if isinstance(value, str) else dict(value)
        fields.pop("conn_id", None)
        return cls(conn_id=conn_id, **checked_fields(fields))

    @property
    def extra_dejson(self) -> dict[str, Any]:
        """`extra` as a dict; empty if it is not one."""
        return self.get_extra_dejson()

    def get_extra_dejson(self, nested: bool = False) -> dict[str, Any]:
        """`extra` as a dict. `nested`: texts in it that are JSON are decoded, too."""
        try:
            loaded = json.loads(self.extra) if self.extra else {}
        except ValueError:
            log.error("the extra of connection `%s` is not JSON", self.conn_id)
            loaded = {}
        extra: dict[str, Any] = loaded if isinstance(loaded, dict) else {}
        return {key: _decoded(value) for key, value in extra.items()} if nested else extra

    def get_uri(self) -> str:
        """All of it as one URI, in Airflow's form."""
        return uri_of(self.to_dict())

    def get_password(self) -> str | None:
        return self.password

    def get_extra(self) -> str | None:
        return self.extra

    def to_dict(self, *, prune_empty: bool = False, validate: bool = True) -> dict[str, Any]:
        """The fields by name."""
        fields = {"conn_id": self.conn_id, **{name: getattr(self, name) for name in FIELDS}}
        return {name: value for name, value in fields.items() if not prune_empty or value not in (None, "")}

    def as_json(self) -> str:
        """All of it as JSON that `from_json` reads."""
        fields = self.to_dict(prune_empty=True)
        fields.pop("conn_id", None)
        if self.extra:
            fields["extra"] = self.extra_dejson
        return json.dumps(fields)

    def get_hook(self, *, hook_params: Mapping[str, Any] | None = None) -> Any:
        """The hook that a provider has for this type of connection."""
        hook_class, parameter = hook_of(self.conn_type or "")
        return hook_class(**{parameter: self.conn_id}, **(hook_params or {}))

    def test_connection(self) -> tuple[bool, str]:
        """Whether it works, by its hook's judgement, and a sentence about it."""
        try:
            hook = self.get_hook()
            if not hasattr(hook, "test_connection"):
                return False, f"the hook `{type(hook).__name__}` cannot test connections"
            is_reachable, message = hook.test_connection()
            return bool(is_reachable), str(message)
        except Exception as error:
            return False, str(error) or type(error).__name__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Connection) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<Connection {self.conn_id}>"


def hook_of(conn_type: str) -> tuple[Any, str]:
    """The hook's class for a type of connection, and the name of its parameter for the connection's id."""
    known: dict[str, str] = {}
    for info in provider_infos():
        for one in info.get("connection-types") or ():
            known.setdefault(one["connection-type"], one["hook-class-name"])
    if conn_type not in known:
        provider = _provider_of(conn_type)
        if provider is not None:
            raise AirflowException(
                f"connections of type `{conn_type}` come with Airflow's provider `{provider}`, which is not installed;"
                f" `headrace providers install {provider}` brings it"
            )
        hint = did_you_mean(conn_type, known) or "`headrace providers install NAME` brings the provider that has it"
        raise AirflowException(f"no installed provider has a hook for connections of type `{conn_type}`; {hint}")
    hook_class = import_string(known[conn_type])
    return hook_class, getattr(hook_class, "conn_name_attr", "conn_id")


def _provider_of(conn_type: str) -> str | None:
    """The package that has a type of connection, by its usual name."""
    for provider, types in _TYPES_OF_PROVIDERS.items():
        if conn_type in types:
            return provider
    return conn_type if conn_type in _PROVIDERS_LIKE_THEIR_TYPE else None


_TYPES_OF_PROVIDERS = {
    "amazon": ("aws", "athena", "chime", "emr", "redshift"),
    "apache-cassandra": ("cassandra",),
    "apache-drill": ("drill",),
    "apache-druid": ("druid",),
    "apache-hdfs": ("webhdfs",),
    "apache-hive": ("hive_cli", "hiveserver2", "hive_metastore"),
    "apache-iceberg": ("iceberg",),
    "apache-impala": ("impala",),
    "apache-kafka": ("kafka",),
    "apache-kylin": ("kylin",),
    "apache-livy": ("livy",),
    "apache-pinot": ("pinot", "pinot_admin"),
    "apache-spark": ("spark", "spark_connect", "spark_sql"),
    "atlassian-jira": ("jira",),
    "cncf-kubernetes": ("kubernetes",),
    "dbt-cloud": ("dbt_cloud",),
    "google": ("google_cloud_platform", "gcpbigquery", "gcpcloudsql", "gcpssh", "google_ads"),
    "hashicorp": ("vault",),
    "microsoft-azure": ("azure", "azure_data_factory", "azure_data_lake", "adls", "wasb"),
    "microsoft-mssql": ("mssql",),
    "slack": ("slackwebhook",),
}
"""Of the usual connections, those that are not called like their provider …"""
_PROVIDERS_LIKE_THEIR_TYPE = frozenset(
    """
    airbyte databricks discord docker elasticsearch ftp github grpc http imap jdbc jenkins mongo mysql neo4j odbc
    opensearch oracle postgres presto redis salesforce samba sftp slack smtp snowflake sqlite ssh tableau teradata trino
    vertica
    """.split()
)
"""… and those that are."""


def _decoded(value: Any) -> Any:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value
