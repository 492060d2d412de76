"""A task that was not done within its `sla`, as `sla_miss_callback` sees it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass
class SlaMiss:
    """One task of one run; `timestamp` is when it was noticed."""

    task_id: str
    dag_id: str
    execution_date: Any
    timestamp: datetime
    email_sent: bool = False
    notification_sent: bool = False
    description: str | None = None

    @property
    def logical_date(self) -> Any:
        return self.execution_date
