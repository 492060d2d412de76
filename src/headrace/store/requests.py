"""What an agent needs to know about the runs whose tasks it claimed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from headrace.clock import from_micros
from headrace.definition import Isolation, Node, node_from_json
from headrace.handoff import Resume, RunContext, Source, TaskRequest
from headrace.state import Layers, Left, Position, Task, merge
from headrace.store.attempt_plans import plan_from_json
from headrace.store.claims import Claim
from headrace.store.database import Reply, Transaction
from headrace.store.definitions import Definitions, Version
from headrace.store.elements import Elements
from headrace.store.run_facts import FACTS, RunFacts
from headrace.store.run_graph import RunGraph
from headrace.store.sql import Sql
from headrace.store.values import ask_for_result

FACTS_OF_ATTEMPTS = Sql(
    f"SELECT attempt.id, {FACTS} FROM attempt JOIN run ON run.id = attempt.run_id WHERE attempt.id IN :ids[]"
)
SKELETON = Sql(
    """
    SELECT task.id, task.parent_id, edge.upstream_id
    FROM task LEFT JOIN edge ON edge.downstream_id = task.id
    WHERE task.attempt_id = :attempt_id AND NOT task.is_superseded
    """
)
STORES = Sql("SELECT task_id, kind, document FROM value WHERE attempt_id = :attempt_id AND kind IN ('export', 'store')")
ANCESTORS = Sql("SELECT id, parent_id, key, body FROM task WHERE id IN :ids[]")
_MOST_ASKED = 4
"""Of so many results it is asked which try they are of, before it is known that they are wanted."""


class RunInfo(NamedTuple):
    """A run as its tasks see it; it does not change while the attempt lasts."""

    context: RunContext
    source: Source
    version_id: int
    version: Version
    is_layered: bool
    """Whether some node exports parameters, so that a task must look above itself."""


class Requests:
    """Builds task requests, remembering what tasks of the same run and parent share."""

    def __init__(
        self, default_isolation: Isolation = "process", limit: int = 512, max_map_length: int = 100_000
    ) -> None:
        self._default_isolation = default_isolation
        self._max_map_length = max_map_length
        self._limit = limit
        self._runs: OrderedDict[int, RunInfo] = OrderedDict()
        self._above: OrderedDict[int, Mapping[str, Any]] = OrderedDict()
        self._ancestors: OrderedDict[int, tuple[int | None, str, str | None]] = OrderedDict()
        self._mapped_over: list[tuple[int, str]] = []
        """The results, by attempt and task, whose elements the last requests had."""
        self._asked: dict[tuple[int, str], Reply] = {}

    def ask(self, tx: Transaction, *, is_likely: bool) -> None:
        """A transaction begins. `is_likely`: `build` will want to know what it did last time; it is asked for now."""
        wanted = self._mapped_over if is_likely else ()
        self._asked = {(attempt_id, key): ask_for_result(tx, attempt_id, key) for attempt_id, key in wanted}

    def build(
        self, tx: Transaction, claims: Sequence[Claim], logs: Mapping[int, str], kill_grace_seconds: float
    ) -> list[TaskRequest]:
        """Requests for tasks that were just claimed. `logs` gives the path of each one's log file."""
        elements = self._elements(tx, [claim.task for claim in claims])
        self._learn_ancestors(tx, self._parents(tx, [claim.task for claim in claims]))
        layers = {attempt_id: self._layers(tx, attempt_id) for attempt_id in _with_stores(claims)}
        return [
            self._request(
                tx,
                claim.task,
                layers.get(claim.task.attempt_id),
                elements.get(claim.task.id, {}),
                logs,
                kill_grace_seconds,
            )
            for claim in claims
        ]

    def run(self, tx: Transaction, attempt_id: int) -> RunInfo:
        """The run of an attempt."""
        if attempt_id not in self._runs:
            _shorten(self._runs, self._limit)
            self._ask_for_runs(tx, [attempt_id])
        return self._runs[attempt_id]

    def learn_runs(self, tx: Transaction, graph: RunGraph, attempt_ids: Iterable[int]) -> None:
        """Have runs at hand that are wanted soon: one question for all that neither this nor the graph knows of."""
        # Before any is added, so that none of them is forgotten while they are wanted, however many there are.
        _shorten(self._runs, self._limit)
        missing = []
        for attempt_id in sorted(set(attempt_ids) - self._runs.keys()):
            facts = graph.facts(attempt_id)
            if facts is not None:
                self._runs[attempt_id] = _run_info(tx, attempt_id, facts)
            else:
                missing.append(attempt_id)
        if missing:
            self._ask_for_runs(tx, missing)

    def _ask_for_runs(self, tx: Transaction, attempt_ids: Sequence[int]) -> None:
        for attempt_id, *facts in tx.run(FACTS_OF_ATTEMPTS, {"ids": list(attempt_ids)}):
            self._runs[attempt_id] = _run_info(tx, attempt_id, RunFacts(*facts))

    def _elements(self, tx: Transaction, tasks: Sequence[Task]) -> dict[int, dict[str, msgspec.Raw]]:
        """What each instance is mapped over, in the common case of a single result: one question for all of them."""
        wanted: dict[tuple[int, str], list[Task]] = {}
        for task in tasks:
            if not task.is_instance:
                # It may be one that is made anew, and its old result was taken away after it was asked for.
                self._asked.pop((task.attempt_id, task.key), None)
            else:
                length = tx.shared(Definitions).node(tx, self.run(tx, task.attempt_id).version_id, task).expand
                if length is not None and length.op == "result":
                    wanted.setdefault((task.attempt_id, length.task), []).append(task)
        found: dict[int, dict[str, msgspec.Raw]] = {}
        for (attempt_id, key), instances in wanted.items():
            indexes = [task.map_index for task in instances]
            asked = self._asked.get((attempt_id, key))
            elements = tx.shared(Elements).elements(tx, attempt_id, key, indexes, asked)
            found.update((one.id, {key: elements[one.map_index]}) for one in instances if one.map_index in elements)
        self._mapped_over = list(wanted)[:_MOST_ASKED]
        self._asked = {}
        return found

    def _parents(self, tx: Transaction, tasks: Sequence[Task]) -> list[int]:
        """Of those tasks whose parameters depend on what lies above them."""
        layered = [task for task in tasks if self._needs_layers(self.run(tx, task.attempt_id), task)]
        return [task.parent_id for task in layered if task.parent_id is not None]

    def _needs_layers(self, info: RunInfo, task: Task) -> bool:
        return info.is_layered or task.grown_by is not None

    def _request(
        self,
        tx: Transaction,
        task: Task,
        layers: Layers | None,
        elements: dict[str, msgspec.Raw],
        logs: Mapping[int, str],
        kill_grace_seconds: float,
    ) -> TaskRequest:
        info = self.run(tx, task.attempt_id)
        definitions = tx.shared(Definitions)
        node = definitions.node(tx, info.version_id, task)
        if node.isolation == "default":
            node = msgspec.structs.replace(node, isolation=self._default_isolation)
        base = (info.version.workflow.params, info.context.params)
        if layers is not None:
            params = layers.visible(task.id)
        elif self._needs_layers(info, task):
            params = merge(self._merge_above(tx, task.parent_id, info, base), node.export)
        else:
            params = {**base[0], **base[1]}
        return TaskRequest(
            task_id=task.id,
            fence=task.fence,
            key=task.key,
            map_index=task.map_index,
            try_number=task.try_number,
            max_tries=task.max_tries,
            node=node,
            source=info.source,
            run=info.context,
            params=params,
            elements=elements,
            poll_state=msgspec.json.decode(task.poll_state) if task.poll_state else {},
            resume=msgspec.json.decode(task.resume, type=Resume) if task.resume else None,
            started_at=_instant(task.started_at),
            first_started_at=_instant(task.first_started_at),
            waited_seconds=((task.queued_at or 0) - (task.first_started_at or task.queued_at or 0)) / 1_000_000,
            has_map_consumers=task.key in info.version.mapped_over,
            max_map_length=self._max_map_length,
            log_path=logs.get(task.id, ""),
            kill_grace_seconds=kill_grace_seconds,
        )

    def _merge_above(
        self, tx: Transaction, parent_id: int | None, info: RunInfo, base: tuple[Mapping[str, Any], ...]
    ) -> dict[str, Any]:
        """Base and exports of every ancestor. Siblings share the answer, and so do cousins in part."""
        if parent_id is None:
            return merge(merge({}, base[0]), base[1])
        known = self._above.get(parent_id)
        if known is None:
            if parent_id not in self._ancestors:
                self._learn_ancestors(tx, [parent_id])
            above_id, _, _ = self._ancestors[parent_id]
            node = self._enclosing(info, parent_id)
            known = self._above[parent_id] = merge(self._merge_above(tx, above_id, info, base), node.export)
            _shorten(self._above, self._limit)
        return merge({}, known)

    def _enclosing(self, info: RunInfo, task_id: int) -> Node:
        """What the definition says about a task that was read as one's ancestor."""
        _, key, body = self._ancestors[task_id]
        return info.version.nodes[key] if body is None else node_from_json(body)

    def _layers(self, tx: Transaction, attempt_id: int) -> Layers:
        """Everything that tasks of an attempt left for others, for all requests of one transaction."""
        info = self.run(tx, attempt_id)

        def node_of(task_id: int) -> Node:
            self._learn_ancestors(tx, [task_id])
            return self._enclosing(info, task_id)

        base = (info.version.workflow.params, info.context.params)
        return Layers(base, _positions(tx, attempt_id), _left(tx, attempt_id), node_of)

    def _learn_ancestors(self, tx: Transaction, ids: Iterable[int]) -> None:
        """Read what lies above tasks, a level at a time for all of them."""
        _shorten(self._ancestors, self._limit)
        level = {task_id for task_id in ids if task_id not in self._ancestors}
        while level:
            rows = tx.run(ANCESTORS, {"ids": sorted(level)})
            self._ancestors.update((task_id, (parent_id, key, body)) for task_id, parent_id, key, body in rows)
            above = {parent_id for _, parent_id, _, _ in rows if parent_id is not None}
            level = above - self._ancestors.keys()


def _shorten(cache: OrderedDict[Any, Any], limit: int) -> None:
    while len(cache) > limit:
        cache.popitem(last=False)


def _run_info(tx: Transaction, attempt_id: int, facts: RunFacts) -> RunInfo:
    version = tx.shared(Definitions).version(tx, facts.version_id)
    context = RunContext(
        project=version.project_name,
        project_id=version.project_id,
        workflow=facts.workflow,
        run_id=facts.run_id,
        run_key=facts.key,
        run_type=facts.type,
        attempt_id=attempt_id,
        attempt_number=facts.number,
        attempt_name=facts.name,
        created_at=_instant(facts.created_at),
        logical_time=_instant(facts.logical_at),
        previous_time=_instant(facts.previous_at),
        interval_start=_instant(facts.interval_start),
        interval_end=_instant(facts.interval_end),
        run_after=_instant(facts.run_after),
        started_at=_instant(facts.started_at),
        timezone=version.workflow.timezone,
        params=plan_from_json(facts.plan).params_over(msgspec.json.decode(facts.params)),
        partition_key=facts.partition_key,
        partition_time=_instant(facts.partition_at),
    )
    source = Source(
        root=version.project_root,
        file=version.file,
        language=version.workflow.language,
        revision=version.revision_digest,
        archive=version.archive_digest,
    )
    is_layered = any(node.export for node in version.workflow.nodes)
    return RunInfo(context, source, facts.version_id, version, is_layered)


def _instant(micros: int | None) -> Any:
    return None if micros is None else from_micros(micros)


def _with_stores(claims: Sequence[Claim]) -> set[int]:
    """The attempts in which some task has left parameters for others."""
    return {claim.task.attempt_id for claim in claims if claim.has_stores}


def _positions(tx: Transaction, attempt_id: int) -> dict[int, Position]:
    parents: dict[int, int | None] = {}
    upstream: dict[int, list[int]] = {}
    for task_id, parent_id, upstream_id in tx.run(SKELETON, {"attempt_id": attempt_id}):
        parents[task_id] = parent_id
        if upstream_id is not None:
            upstream.setdefault(task_id, []).append(upstream_id)
    return {task_id: Position(parent_id, upstream.get(task_id, ())) for task_id, parent_id in parents.items()}


def _left(tx: Transaction, attempt_id: int) -> dict[int, Left]:
    left: dict[int, Left] = {}
    for task_id, kind, document in tx.run(STORES, {"attempt_id": attempt_id}):
        value, known = msgspec.json.decode(document), left.get(task_id, Left())
        left[task_id] = (
            known._replace(exported=value)
            if kind == "export"
            else known._replace(store=value["store"], reset=value["reset"])
        )
    return left
