"""Waiting for a file or a folder with files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta
from functools import cached_property
from glob import iglob
from typing import Any, ClassVar

from headrace.authoring.dag import Connection, Context
from headrace.authoring.dag.exceptions import AirflowException, AirflowNotFoundException
from headrace.authoring.dag.triggers import StartTriggerArgs
from headrace.operators.options import default_deferrable
from headrace.operators.sensors.poking import BaseSensorOperator
from headrace.operators.triggers import FileTrigger

_DEFAULT_CONNECTION = "fs_default"


class FileSensor(BaseSensorOperator):
    """Waits until a file matches the pattern, or a folder that matches has a file somewhere in it.

    A relative path begins at the folder that the connection names under `path` in its extra.
    """

    operator_name = "file_sensor"
    shown_fields: ClassVar[Sequence[str]] = ("filepath", *BaseSensorOperator.shown_fields)
    template_fields: Sequence[str] = ("filepath", "fs_conn_id")
    ui_color = "#91818a"

    def __init__(
        self,
        *,
        filepath: str | os.PathLike[str],
        fs_conn_id: str = _DEFAULT_CONNECTION,
        recursive: bool = False,
        deferrable: bool | None = None,
        start_from_trigger: bool = False,
        trigger_kwargs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.filepath = filepath
        self.fs_conn_id = fs_conn_id
        self.recursive = recursive
        self.deferrable = default_deferrable() if deferrable is None else deferrable
        self.start_from_trigger = self.deferrable and start_from_trigger
        if self.start_from_trigger:
            self.start_trigger_args = StartTriggerArgs(
                trigger_cls="airflow.providers.standard.triggers.file.FileTrigger",
                trigger_kwargs={"filepath": self.path, "recursive": recursive, "poke_interval": self.poke_interval},
                next_method="execute_complete",
                timeout=timedelta(seconds=self.timeout),
            )

    @cached_property
    def path(self) -> str:
        """The pattern with the connection's folder before it."""
        return os.path.join(self._folder(), os.fspath(self.filepath))

    def poke(self, context: Context) -> bool:
        self.log.info("looking for `%s`", self.path)
        for path in iglob(self.path, recursive=self.recursive):
            if os.path.isfile(path) or any(files for _, _, files in os.walk(path)):
                self.log.info("found `%s`", path)
                return True
        return False

    def execute(self, context: Context) -> Any:
        if not self.deferrable:
            return super().execute(context)
        if not self.poke(context):
            self.defer(
                trigger=FileTrigger(self.path, self.recursive, self.poke_interval),
                method_name="execute_complete",
                timeout=timedelta(seconds=self.timeout),
            )
        return None

    def execute_complete(self, context: Context, event: Any = None) -> None:
        """Go on after the wait in a trigger."""
        if not event:
            raise AirflowException(f"sensor `{self.task_id}` did not find `{self.filepath}`")

    def _folder(self) -> str:
        try:
            folder: str = Connection.get(self.fs_conn_id).extra_dejson.get("path") or ""
        except AirflowNotFoundException:
            if self.fs_conn_id != _DEFAULT_CONNECTION:
                raise
            folder = ""  # nobody needs to set up a connection for absolute paths
        return folder
