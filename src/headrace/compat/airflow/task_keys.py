"""What names one try of a task."""

from __future__ import annotations

from typing import Any, NamedTuple


class TaskInstanceKey(NamedTuple):
    dag_id: str
    task_id: str
    run_id: str
    try_number: int = 1
    map_index: int = -1

    @property
    def primary(self) -> tuple[str, str, str, int]:
        return self.dag_id, self.task_id, self.run_id, self.map_index

    @property
    def key(self) -> TaskInstanceKey:
        return self

    def with_try_number(self, try_number: int) -> TaskInstanceKey:
        return self._replace(try_number=try_number)

    @classmethod
    def from_dict(cls, dictionary: dict[str, Any]) -> TaskInstanceKey:
        return cls(**dictionary)
