"""What `ti` says about itself: its task's arguments, its process, and where people see it."""

from __future__ import annotations

import os
import socket
from typing import Any
from urllib.parse import quote, urlencode

from headrace.authoring.dag.configuration import conf


class TryAttributes:
    """Attributes of a try that follow from others."""

    task: Any
    dag_id: str
    task_id: str
    run_id: str
    try_number: int
    map_index: int
    state: str

    @property
    def hostname(self) -> str:
        return socket.gethostname()

    @property
    def operator(self) -> str:
        name: str = self.task.task_type
        return name

    @property
    def key(self) -> tuple[str, str, str, int, int]:
        """What names this try among all others."""
        return self.dag_id, self.task_id, self.run_id, self.try_number, self.map_index

    @property
    def queue(self) -> str:
        return str(self.task.settings.queue)

    @property
    def pool(self) -> str:
        return str(self.task.settings.pool)

    @property
    def pool_slots(self) -> int:
        return int(self.task.settings.pool_slots)

    @property
    def priority_weight(self) -> int:
        return int(self.task.settings.priority_weight)

    @property
    def executor_config(self) -> Any:
        return self.task.settings.executor_config

    @property
    def is_mapped(self) -> bool:
        return self.map_index >= 0

    @property
    def pid(self) -> int:
        return os.getpid()

    @property
    def unixname(self) -> str:
        # Hardly any task asks, and every task process would have it in memory.
        import getpass

        return getpass.getuser()

    @property
    def log_url(self) -> str:
        """Where people see this try: below the `base_url` of Airflow's configuration."""
        base = str(conf.get("api", "base_url", fallback="") or "http://localhost:8080").rstrip("/")
        path = f"dags/{quote(self.dag_id)}/runs/{quote(self.run_id)}/tasks/{quote(self.task_id)}"
        mapped = f"/mapped/{self.map_index}" if self.is_mapped else ""
        return f"{base}/{path}{mapped}?{urlencode({'try_number': self.try_number})}"

    @property
    def mark_success_url(self) -> str:
        return self.log_url

    def current_state(self, session: Any = None) -> str:
        return self.state
