"""Sends traces of the runs whose end this process has committed, in a thread of its own."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Protocol

from headrace.errors import HeadraceError
from headrace.metrics.catalogue import TRACES_DROPPED, TRACES_SENT
from headrace.store import RunEndings, Store
from headrace.store.traced import EndedAttempt, ended_attempt
from headrace.trace_context import is_tracing_wanted

_log = logging.getLogger("headrace.tracing")

_WAITING = 10_000
"""How many ended runs may wait to be sent; beyond that, tracing must not cost memory."""


class Spans(Protocol):
    """What the exporter needs of whoever makes spans."""

    def send(self, attempt: EndedAttempt) -> None: ...

    def flush(self) -> None: ...

    def close(self) -> None: ...


class TraceExporter:
    """`start`, then `stop`. A run that ends meanwhile is read from the store and sent; nobody waits for that."""

    def __init__(self, store: Store, make_spans: Callable[[], Spans]) -> None:
        self._store = store
        self._make_spans = make_spans
        self._ended: queue.Queue[int | None] = queue.Queue(_WAITING)
        self._thread = threading.Thread(target=self._live, name="headrace-traces", daemon=True)

    def start(self) -> None:
        self._spans = self._make_spans()
        self._store.database.shared(RunEndings).subscribe(self._note)
        self._thread.start()

    def stop(self) -> None:
        """Send what waits."""
        self._ended.put(None)
        self._thread.join()

    def _note(self, attempt_id: int) -> None:
        try:
            self._ended.put_nowait(attempt_id)
        except queue.Full:
            TRACES_DROPPED.add()

    def _live(self) -> None:
        while (attempt_id := self._ended.get()) is not None:
            self._send(attempt_id)
            if self._ended.empty():
                self._spans.flush()
        self._spans.close()
        self._store.close()

    def _send(self, attempt_id: int) -> None:
        try:
            with self._store.read() as tx:
                attempt = ended_attempt(tx, attempt_id)
            if attempt is not None:
                self._spans.send(attempt)
                TRACES_SENT.add()
        except HeadraceError as error:
            TRACES_DROPPED.add()
            _log.warning("could not read attempt %d for its trace: %s", attempt_id, error.message)
        except Exception:
            # Whatever a library does, the runs of this process must go on.
            TRACES_DROPPED.add()
            _log.exception("could not send the trace of attempt %d", attempt_id)


def trace_exporter(store: Store, environ: Mapping[str, str]) -> TraceExporter | None:
    """What sends traces, if OpenTelemetry's variables ask for them and its libraries are there."""
    if not is_tracing_wanted(environ):
        return None
    try:
        # Only where somebody wants it: the libraries take a tenth of a second, and are an extra.
        spans = import_module("headrace.tracing.spans")
    except ImportError as error:
        # Such variables are often set for everything on a machine, which is no reason to refuse to work.
        _log.warning(
            "OpenTelemetry's variables ask for traces, but `%s` is not installed: "
            '`pip install "headrace[otel]"` brings it',
            error.name,
        )
        return None
    return TraceExporter(store, spans.SpanMaker)
