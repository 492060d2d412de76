"""Servers that others may observe: by metrics and by traces, as far as somebody wants that."""

from __future__ import annotations

import os
from collections.abc import Sequence

from headrace.actions.monitoring import metrics_server
from headrace.actions.parts import Parts
from headrace.actions.serving import SchedulerServer, Server, Serving
from headrace.tracing import trace_exporter


def observed(parts: Parts, servers: Sequence[Server], metrics_port: int | None = None) -> Serving:
    """These servers on one store. `metrics_port` counts in place of the setting."""
    given, observers = parts.settings.metrics, list[Server]()
    port = given.port if metrics_port is None else metrics_port
    if port is not None:
        tells_of_store = any(isinstance(server, SchedulerServer) for server in servers)
        observers.append(metrics_server(parts.store, parts.clock, given.host, port, tells_of_store=tells_of_store))
    traces = trace_exporter(parts.store, os.environ)
    if traces is not None:
        observers.append(traces)
    # First what may have to say that it cannot start.
    return Serving(parts, [*observers, *servers])
