"""Each event of an asset waits for a run of each workflow that it is for, or has started one: computed the slow way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from headrace.definition import Workflow
from headrace.scheduler.planning import HOLD
from headrace.store import Database
from headrace.store.sql import Sql
from headrace.store.watcher_rows import digest_of
from headrace.testing.recounting import Violation
from headrace.timetable import (
    Contribution,
    KeyMistake,
    PartitionRules,
    condition_keys,
    event_key,
    is_met,
    partition_rules,
)

EVENTS = Sql(
    """
    SELECT asset_event.id, asset.name, asset_event.aliases, asset_event.partition_key, asset_event.extra
    FROM asset_event JOIN asset ON asset.id = asset_event.asset_id WHERE asset_event.id > :last ORDER BY asset_event.id
    """
)
LISTENING = Sql(
    """
    SELECT schedule.workflow_id, schedule.next_run_at FROM schedule
    JOIN workflow ON workflow.id = schedule.workflow_id
    WHERE NOT workflow.is_paused AND schedule.disabled_at IS NULL
    """
)
WATCHERS = Sql("SELECT asset, watcher FROM trigger WHERE asset IS NOT NULL")
QUEUED = Sql("SELECT workflow_id, event_id, key FROM asset_queue")
SORTED = Sql("SELECT workflow_id, partition_key, event_id FROM partition_event")
TAKEN = Sql(
    """
    SELECT run.id, run.workflow_id, run.partition_key, run_asset_event.event_id
    FROM run LEFT JOIN run_asset_event ON run_asset_event.run_id = run.id
    WHERE run.type = 'asset_triggered' OR run_asset_event.event_id IS NOT NULL ORDER BY run.id
    """
)
_LATER_MICROS = round(HOLD.total_seconds() * 1_000_000) + 5_000_000
"""A schedule that is held back is looked at again so much later, by a clock that may be wrong."""


class _Owed(NamedTuple):
    """An event that a workflow was scheduled on when it came."""

    keys: frozenset[str]
    partition_key: str | None

    def partitions(self, spec: dict[str, Any]) -> set[str | None]:
        """The partitions of the workflow that it is for; None stands for all of it."""
        rules = partition_rules(spec)
        return {None} if rules is None else {one for key in self.keys for one in self.partitions_of(rules, key)}

    def partitions_of(self, rules: PartitionRules, key: str) -> list[str]:
        """Those that it is for under one of its names; none, if its key does not fit."""
        try:
            return rules.partitions_of(key, self.partition_key or "")
        except KeyMistake:
            return []


class _Seen(NamedTuple):
    """Where events are."""

    queued: list[tuple[Any, ...]]
    """(workflow, event, name)"""
    sorted: list[tuple[Any, ...]]
    """(workflow, partition, event)"""
    taken: list[tuple[Any, ...]]
    """(run, workflow, partition, event)"""

    def keys(self, workflow_id: int) -> set[str]:
        """The names of what is queued for a workflow."""
        return {key for of, _, key in self.queued if of == workflow_id}


_Place = tuple[int, int, str | None]
"""(workflow, event, partition): where an event belongs, once."""


class AssetCheck:
    """`follow` after each commit, `check` now and then."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._last_event = 0
        self._owed: dict[tuple[int, int], _Owed] = {}
        self.payloads: Counter[int] = Counter()
        """How often each event of a watcher has updated its asset."""

    def follow(self, workflows: Mapping[int, Workflow]) -> None:
        """Note for whom the events are that have come."""
        with self._database.read() as tx:
            events = tx.run(EVENTS, {"last": self._last_event})
            listening = {row[0] for row in tx.run(LISTENING)} if events else set()
        for event_id, name, aliases, partition_key, extra in events:
            self._last_event = event_id
            self.payloads.update(_payload(extra))
            keys = {event_key("asset", name), *(event_key("alias", one) for one in msgspec.json.decode(aliases))}
            for workflow_id, spec in _specs(workflows):
                found = keys.intersection(condition_keys(spec["when"]))
                is_for_it = ("partitions" in spec) == (partition_key is not None)
                if found and is_for_it and workflow_id in listening:
                    self._owed[workflow_id, event_id] = _Owed(frozenset(found), partition_key)

    def check(self, workflows: Mapping[int, Workflow], now: int) -> None:
        """Raise a Violation if an event is nowhere or in two places, or if a run began too early or could begin."""
        with self._database.read() as tx:
            seen = _Seen(*(list(map(tuple, tx.run(statement))) for statement in (QUEUED, SORTED, TAKEN)))
            next_run_at = dict(tx.run(LISTENING))
        specs = dict(_specs(workflows))
        self._check_places(seen, specs)
        for run_id, workflow_id, partition in dict.fromkeys(row[:3] for row in seen.taken):
            event_ids = [row[3] for row in seen.taken if row[0] == run_id]
            if not self._is_enough(specs[workflow_id], workflow_id, partition, event_ids):
                raise Violation(f"run {run_id} of workflow {workflow_id} began before all that it needs had come")
        for workflow_id, partition in dict.fromkeys(row[:2] for row in seen.sorted):
            event_ids = [row[2] for row in seen.sorted if row[:2] == (workflow_id, partition)]
            if self._is_enough(specs[workflow_id], workflow_id, partition, event_ids):
                raise Violation(f"partition `{partition}` of workflow {workflow_id} has all it needs, and no run")
        for workflow_id, at in next_run_at.items():
            is_due = workflow_id in specs and _is_due(specs[workflow_id], seen.keys(workflow_id))
            if is_due and (at is None or at > now + _LATER_MICROS):
                raise Violation(f"a run of workflow {workflow_id} is due, and its schedule is looked at at {at}")

    def check_watchers(self, workflows: Mapping[int, Workflow]) -> None:
        """Raise a Violation if something is not watched as it should be while nothing is paused."""
        with self._database.read() as tx:
            found = {tuple(row) for row in tx.run(WATCHERS)}
        uses = [use for workflow_id, _ in _specs(workflows) for use in workflows[workflow_id].assets]
        wanted = {(use.name, digest_of(watcher)) for use in uses for watcher in use.watchers}
        if found != wanted:
            raise Violation(f"these should be watched: {wanted}, and these are: {found}")

    def _check_places(self, seen: _Seen, specs: Mapping[int, dict[str, Any]]) -> None:
        waiting = {row[:2] for row in seen.queued}
        found: Counter[_Place] = Counter((*pair, None) for pair in waiting)
        # An event may be known by several names, under each of which it is kept.
        found.update({(workflow_id, event_id, partition) for workflow_id, partition, event_id in seen.sorted})
        found.update((workflow_id, event_id, partition) for _, workflow_id, partition, event_id in seen.taken)
        expected = Counter(
            (*pair, partition)
            for pair, owed in self._owed.items()
            for partition in ([None] if pair in waiting else owed.partitions(specs[pair[0]]))
        )
        if found != expected:
            wrong = f"too many {dict(found - expected)}, too few {dict(expected - found)}"
            raise Violation(f"events are not where they belong (workflow, event, partition): {wrong}")

    def _is_enough(
        self, spec: dict[str, Any], workflow_id: int, partition: str | None, event_ids: Iterable[int]
    ) -> bool:
        """Whether these events start a run, of a partition or not."""
        owed = [self._owed[workflow_id, event_id] for event_id in event_ids]
        rules = partition_rules(spec)
        if rules is None or partition is None:
            return is_met(spec["when"], {key for one in owed for key in one.keys})
        own = [(one, key) for one in owed for key in one.keys if partition in one.partitions_of(rules, key)]
        return rules.is_ready(partition, [Contribution(key, one.partition_key or "") for one, key in own])


def _specs(workflows: Mapping[int, Workflow]) -> Iterable[tuple[int, dict[str, Any]]]:
    for workflow_id, workflow in workflows.items():
        if workflow.schedule is not None and workflow.schedule.type == "assets":
            yield workflow_id, workflow.schedule.spec


def _is_due(spec: dict[str, Any], keys: Collection[str]) -> bool:
    """Whether there is something to do with what is queued: events about partitions are sorted at once."""
    return bool(keys) if "partitions" in spec else is_met(spec["when"], keys)


def _payload(extra: str) -> list[int]:
    told = msgspec.json.decode(extra)
    return [told["payload"]] if "from_trigger" in told else []
