"""Metrics of a process that serves: what its loops count, and what is in the store when somebody asks."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from headrace.clock import Clock, to_micros
from headrace.errors import HeadraceError
from headrace.metrics import catalogue
from headrace.metrics.instruments import Family, Labels, Reading, Sample
from headrace.metrics.serving import MetricsServer
from headrace.store import PoolRow, Store, Transaction, list_pools
from headrace.store.backlog import Backlog, Size, read_backlog, store_size
from headrace.store.presence import Living, count_live_processes


def metrics_server(store: Store, clock: Clock, host: str, port: int, *, tells_of_store: bool) -> MetricsServer:
    """The metrics of this process and, if wanted, of everything that is in the store."""
    readings = [partial(database_readings, store)]
    if tells_of_store:
        readings.append(partial(store_readings, store, clock))
    return MetricsServer(host, port, readings, on_end=store.close)


def database_readings(store: Store) -> list[Reading]:
    """What this process has asked of the database."""
    return [
        _one(catalogue.STATEMENTS, store.database.statements),
        _one(catalogue.COMMITS, store.database.commits),
        _one(catalogue.OUTAGE_SECONDS, store.outage.seconds),
    ]


def store_readings(store: Store, clock: Clock) -> list[Reading]:
    """What is in the store, or only that it cannot be reached. Whoever asks waits seconds and not for ever."""
    now = to_micros(clock.now())
    if store.outage.is_on:
        return [_one(catalogue.STORE_REACHABLE, 0)]
    try:
        with store.read(gives_up=True) as tx:
            return [*_read(tx, now), _one(catalogue.STORE_REACHABLE, 1)]
    except HeadraceError:
        return [_one(catalogue.STORE_REACHABLE, 0)]


def _read(tx: Transaction, now: int) -> list[Reading]:
    return [
        *_of_backlog(read_backlog(tx, now), now),
        *_of_pools(list_pools(tx)),
        *_of_size(store_size(tx)),
        *_of_processes(count_live_processes(tx, now)),
    ]


def _of_backlog(backlog: Backlog, now: int) -> list[Reading]:
    ready = {(one.pool, one.queue): one for one in backlog.ready}
    return [
        _many(catalogue.TASKS_READY, {labels: one.number for labels, one in ready.items()}),
        _many(catalogue.TASKS_READY_SECONDS, {labels: _seconds(one.since, now) for labels, one in ready.items()}),
        _many(catalogue.TASKS_RUNNING, {(pool, queue): count for pool, queue, count in backlog.held}),
        _many(catalogue.RUNS_ACTIVE, {(state,): count for state, count in backlog.runs.items()}),
        _one(catalogue.SCHEDULES_DUE, backlog.schedules.number),
        _one(catalogue.SCHEDULES_DUE_SECONDS, _seconds(backlog.schedules.since, now)),
        _one(catalogue.TIMERS_DUE_SECONDS, _seconds(backlog.timer_due_at, now)),
        _one(catalogue.TRIGGERS_WAITING, backlog.triggers),
        _one(catalogue.ERRANDS_WAITING, backlog.errands),
        _one(catalogue.SOURCE_ERRORS, backlog.broken_files),
    ]


def _of_pools(pools: list[PoolRow]) -> list[Reading]:
    return [
        _many(catalogue.POOL_SLOTS, {(pool.name,): pool.slots for pool in pools}),
        _many(catalogue.POOL_SLOTS_USED, {(pool.name,): pool.used for pool in pools}),
    ]


def _of_processes(kinds: Mapping[str, Living]) -> list[Reading]:
    return [
        _many(catalogue.PROCESSES_ALIVE, {(kind,): living.working for kind, living in kinds.items()}),
        _many(catalogue.PROCESSES_STOPPING, {(kind,): living.stopping for kind, living in kinds.items()}),
    ]


def _of_size(size: Size) -> list[Reading]:
    return [
        _one(catalogue.STORE_BYTES, size.bytes),
        _many(catalogue.TABLE_ROWS, {(table,): rows for table, rows in size.rows.items()}),
    ]


def _one(family: Family, value: float) -> Reading:
    return Reading(family, [Sample((), value)])


def _many(family: Family, values: Mapping[Labels, float]) -> Reading:
    return Reading(family, [Sample(labels, value) for labels, value in values.items()])


def _seconds(since: int | None, now: int) -> float:
    """How long it has been; 0: nothing waits."""
    return 0.0 if since is None else max(0.0, (now - since) / 1e6)
