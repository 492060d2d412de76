"""Servers that others may observe: by their logs, and by metrics and traces as far as somebody wants that."""

from __future__ import annotations

import os
from collections.abc import Sequence

from headrace.actions.monitoring import metrics_server
from headrace.actions.parts import Parts
from headrace.actions.run_journal import RunJournal
from headrace.actions.serving import SchedulerServer, Server, Serving
from headrace.tracing import trace_exporter


def observed(parts: Parts, servers: Sequence[Server], metrics_port: int | None = None) -> Serving:
    """These servers on one store. `metrics_port` counts in place of the setting.

    What is true of the whole store is told by schedulers: there may be any number of agents, each of which would have
    to read it, too.
    """
    given, observers = parts.settings.metrics, list[Server]()
    tells_of_store = any(isinstance(server, SchedulerServer) for server in servers)
    if tells_of_store:
        observers.append(RunJournal(parts.store))
    port = given.port if metrics_port is None else metrics_port
    if port is not None:
        observers.append(metrics_server(parts.store, parts.clock, given.host, port, tells_of_store=tells_of_store))
    traces = trace_exporter(parts.store, os.environ)
    if traces is not None:
        observers.append(traces)
    # First what may have to say that it cannot start.
    return Serving(parts, [*observers, *servers])
