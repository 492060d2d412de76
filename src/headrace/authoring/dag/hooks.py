"""The class that hooks build on."""

from __future__ import annotations

from typing import Any

from headrace.authoring.dag.connections import Connection
from headrace.authoring.dag.logging_mixin import LoggingMixin


class BaseHook(LoggingMixin):
    """A client of another system that is reached by a connection."""

    _log_config_logger_name = "airflow.task.hooks"

    def __init__(self, logger_name: str | None = None) -> None:
        self._logger_name = logger_name

    @classmethod
    def get_connection(cls, conn_id: str) -> Connection:
        """The connection of that name; AirflowNotFoundException if there is none."""
        return Connection.get(conn_id)

    @classmethod
    async def aget_connection(cls, conn_id: str) -> Connection:
        return cls.get_connection(conn_id)

    @classmethod
    def get_connections(cls, conn_id: str) -> list[Connection]:
        """A list of one: names are unique."""
        return [cls.get_connection(conn_id)]

    @classmethod
    def get_hook(cls, conn_id: str, hook_params: dict[str, Any] | None = None) -> Any:
        """The hook for the type of that connection."""
        return cls.get_connection(conn_id).get_hook(hook_params=hook_params)

    @classmethod
    async def aget_hook(cls, conn_id: str, hook_params: dict[str, Any] | None = None) -> Any:
        return cls.get_hook(conn_id, hook_params)

    def get_conn(self) -> Any:
        """The client itself."""
        raise NotImplementedError

    @classmethod
    def get_connection_form_widgets(cls) -> dict[str, Any]:
        return {}

    @classmethod
    def get_ui_field_behaviour(cls) -> dict[str, Any]:
        return {}
