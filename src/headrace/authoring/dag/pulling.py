"""`xcom_pull`: which results are meant, asked for in one question, and in which shape they are given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from headrace.authoring.asking import Engine
from headrace.authoring.dag.xcom import deserialized
from headrace.authoring.dag.xcom_arg import RETURN_VALUE

_UNMAPPED = -1


class Puller(Protocol):
    """What is known about the try that asks."""

    task: Any
    dag: Any
    task_id: str
    dag_id: str
    run_id: str
    map_index: int


class Pull:
    """One call of `xcom_pull`, up to the question whose results are meant."""

    def __init__(
        self,
        puller: Puller,
        engine: Engine,
        own: dict[str, Any],
        key: str | None,
        default: Any,
        dag_id: str | None,
        run_id: str | None,
        include_prior: bool,
    ) -> None:
        self._puller = puller
        self._engine = engine
        self._own = own
        self._key = key
        self._default = default
        self._include_prior = include_prior
        self._where = _where(puller, dag_id, run_id)

    def one(self, task_id: str, map_indexes: int | Iterable[int] | None) -> Any:
        """Of one task: its value, or the list of its instances' values."""
        if map_indexes is not None and not isinstance(map_indexes, int):
            return self.several([task_id], map_indexes)
        if self._is_own(task_id, map_indexes):
            return self._own[self._key or RETURN_VALUE]
        found = self._ask([task_id]).get(task_id, _Results())
        if map_indexes is not None:
            return found.at(map_indexes, self._default)
        return found.in_order if found.is_mapped else found.first(self._default)

    def several(self, task_ids: Sequence[str], map_indexes: int | Iterable[int] | None) -> list[Any]:
        """Of several tasks: one list, in the order of the tasks and their instances."""
        indexes = None if map_indexes is None else [map_indexes] if isinstance(map_indexes, int) else list(map_indexes)
        values: list[Any] = []
        found = self._ask([task_id for task_id in task_ids if not self._is_own(task_id, None)])
        for task_id in task_ids:
            results = found.get(task_id, _Results())
            if indexes is not None:
                values += [results.at(index, self._default) for index in indexes]
            elif self._is_own(task_id, None):
                values.append(self._own[self._key or RETURN_VALUE])
            else:
                values += results.in_order if results.is_mapped else [results.first(self._default)]
        return values

    def nearest(self, map_indexes: int | Iterable[int] | None) -> Any:
        """This task's own value; if it has none, that of the last task before it that has one."""
        puller = self._puller
        if self._where or self._include_prior or map_indexes is not None:
            return self.one(puller.task_id, map_indexes)
        if self._is_own(puller.task_id, None):
            return self._own[self._key or RETURN_VALUE]
        before = puller.task.get_flat_relative_ids(upstream=True)
        ids = [task_id for task_id in puller.dag.topological_ids() if task_id in before]
        found = self._ask(ids) if ids else {}
        last = next((found[task_id] for task_id in reversed(ids) if found.get(task_id)), None)
        if last is None:
            return self._default
        return last.in_order if last.is_mapped else last.first(self._default)

    def _is_own(self, task_id: str, map_index: int | None) -> bool:
        """Whether it is what this very try has pushed, which nobody else has yet."""
        is_here = not self._where and task_id == self._puller.task_id and (self._key or RETURN_VALUE) in self._own
        return is_here and map_index in (None, self._puller.map_index)

    def _ask(self, task_ids: Sequence[str]) -> dict[str, _Results]:
        found: dict[str, _Results] = {}
        if not task_ids:
            return found
        more = {"include_prior": True} if self._include_prior else {}
        for one in self._engine.ask("get_results", tasks=list(task_ids), name=self._key, **self._where, **more):
            found.setdefault(one["task"], _Results()).add(one)
        return found


class _Results:
    """The results of one task."""

    def __init__(self) -> None:
        self.is_mapped = False
        self._by_index: dict[int, tuple[str, Any]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_index)

    def add(self, described: dict[str, Any]) -> None:
        self.is_mapped = self.is_mapped or described["is_mapped"]
        if "value" in described:
            index, name = described["map_index"], described["name"]
            # With any name allowed, what the task returned comes before what it pushed.
            if index not in self._by_index or name == RETURN_VALUE:
                self._by_index[index] = (name, described["value"])

    @property
    def in_order(self) -> list[Any]:
        return [self._value(index) for index in sorted(self._by_index)]

    def first(self, default: Any) -> Any:
        return self._value(min(self._by_index)) if self._by_index else default

    def at(self, index: int, default: Any) -> Any:
        index = max(index, _UNMAPPED)
        return self._value(index) if index in self._by_index else default

    def _value(self, index: int) -> Any:
        name, document = self._by_index[index]
        return deserialized(document, name)


def _where(puller: Puller, dag_id: str | None, run_id: str | None) -> dict[str, str]:
    where: dict[str, str] = {}
    if dag_id is not None and dag_id != puller.dag_id:
        where["workflow"] = dag_id
        where["run_key"] = run_id or puller.run_id
    elif run_id is not None and run_id != puller.run_id:
        where["run_key"] = run_id
    return where
