"""Waiting for a shell command to succeed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from headrace.authoring.dag import Context
from headrace.authoring.dag.exceptions import AirflowFailException
from headrace.operators.bash import run_bash
from headrace.operators.sensors.poking import BaseSensorOperator


class BashSensor(BaseSensorOperator):
    """Runs a command until it exits with 0.

    With `retry_exit_code`, only that code means "not yet"; any other fails the task for good.
    """

    operator_name = "bash_sensor"
    shown_fields: ClassVar[Sequence[str]] = ("bash_command", *BaseSensorOperator.shown_fields)
    template_fields: Sequence[str] = ("bash_command", "env")
    template_ext: Sequence[str] = (".sh", ".bash")

    def __init__(
        self,
        *,
        bash_command: Any,
        env: Mapping[str, str] | None = None,
        output_encoding: str = "utf-8",
        retry_exit_code: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.bash_command = bash_command
        self.env = env
        self.output_encoding = output_encoding
        self.retry_exit_code = retry_exit_code

    def poke(self, context: Context) -> bool:
        code = run_bash(self.bash_command, None if self.env is None else dict(self.env), self.output_encoding)
        if code == 0:
            return True
        if self.retry_exit_code is None or code == self.retry_exit_code:
            self.log.info("the command of sensor `%s` exited with %s: not yet", self.task_id, code)
            return False
        raise AirflowFailException(
            f"the command of sensor `{self.task_id}` exited with {code}, expected 0 or {self.retry_exit_code}"
        )
