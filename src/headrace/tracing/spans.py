"""Makes OpenTelemetry's spans of an attempt that has ended."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.metadata import entry_points

from opentelemetry.context import Context
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.trace import Span, Status, StatusCode, set_span_in_context

from headrace.clock import from_micros
from headrace.errors import UsageError
from headrace.release import VERSION
from headrace.store.traced import EndedAttempt, EndedTry
from headrace.trace_context import TracedAttempt

_EXPORTERS = "opentelemetry_traces_exporter"
_BATCH = 256
"""Spans that are made before they are sent; more than a processor keeps would be thrown away."""
_SEND_MILLISECONDS = 10_000
_Attributes = dict[str, str | int | bool]


class _PlannedIds(IdGenerator):
    """Gives the next span the ids that were decided on."""

    def __init__(self) -> None:
        self.trace_id = 0
        self.span_id = 0

    def generate_trace_id(self) -> int:
        return self.trace_id

    def generate_span_id(self) -> int:
        return self.span_id


class SpanMaker:
    """Spans of attempts, sent by an exporter. Used by one thread."""

    def __init__(self, exporter: SpanExporter | None = None) -> None:
        """Without an exporter: the one that OpenTelemetry's variables name."""
        self._ids = _PlannedIds()
        self._provider = TracerProvider(id_generator=self._ids, resource=_resource(os.environ))
        self._provider.add_span_processor(BatchSpanProcessor(exporter or _configured_exporter(os.environ)))
        self._tracer = self._provider.get_tracer("headrace", VERSION)

    def send(self, attempt: EndedAttempt) -> None:
        """One span for the attempt, and below it one for each try."""
        where = TracedAttempt(
            attempt.project, attempt.workflow, attempt.run_id, attempt.number, from_micros(attempt.created_at)
        )
        self._ids.trace_id, self._ids.span_id = where.trace_id, where.pass_id(from_micros(attempt.started_at))
        root = self._tracer.start_span(
            attempt.workflow, Context(), start_time=attempt.started_at * 1000, attributes=_of_attempt(attempt)
        )
        context = set_span_in_context(root, Context())
        for number, one in enumerate(attempt.tries, start=1):
            self._ids.span_id = where.try_id(one.task_id, one.fence)
            self._send_try(one, attempt, context)
            if number % _BATCH == 0:
                self._provider.force_flush(_SEND_MILLISECONDS)
        if attempt.state == "failed":
            root.set_status(Status(StatusCode.ERROR, attempt.reason))
        root.end(attempt.ended_at * 1000)

    def flush(self) -> None:
        """Send what was made."""
        self._provider.force_flush(_SEND_MILLISECONDS)

    def close(self) -> None:
        self._provider.shutdown()

    def _send_try(self, one: EndedTry, attempt: EndedAttempt, context: Context) -> None:
        started_at = one.ended_at if one.started_at is None else one.started_at
        attributes = {**_of_run(attempt), **_of_try(one)}
        span = self._tracer.start_span(one.name, context, start_time=started_at * 1000, attributes=attributes)
        _tell_error(span, one)
        span.end(one.ended_at * 1000)


def _tell_error(span: Span, one: EndedTry) -> None:
    error = one.error
    if one.state != "failed" or error is None:
        return
    told = {"exception.type": error.type, "exception.message": error.message, "exception.stacktrace": error.traceback}
    span.add_event("exception", {name: text for name, text in told.items() if text}, one.ended_at * 1000)
    span.set_status(Status(StatusCode.ERROR, f"{error.type}: {error.message}"))


def _of_run(attempt: EndedAttempt) -> _Attributes:
    return {
        "headrace.project": attempt.project,
        "headrace.workflow": attempt.workflow,
        "headrace.run.id": attempt.run_id,
        "headrace.run.key": attempt.run_key,
        "headrace.attempt": attempt.number,
    }


def _of_attempt(attempt: EndedAttempt) -> _Attributes:
    attributes: _Attributes = {
        **_of_run(attempt),
        "headrace.run.type": attempt.run_type,
        "headrace.outcome": attempt.state,
    }
    if attempt.logical_at is not None:
        attributes["headrace.run.logical_time"] = from_micros(attempt.logical_at).isoformat()
    return attributes


def _of_try(one: EndedTry) -> _Attributes:
    attributes: _Attributes = {
        "headrace.task": one.key,
        "headrace.operator": one.operator,
        "headrace.try": one.try_number,
        "headrace.outcome": one.state,
    }
    if one.map_index >= 0:
        attributes["headrace.map_index"] = one.map_index
    if one.agent is not None:
        attributes["headrace.agent"] = one.agent
    return attributes


def _resource(environ: Mapping[str, str]) -> Resource:
    """Who sends; what the variables say about that comes first."""
    is_named = "OTEL_SERVICE_NAME" in environ or f"{SERVICE_NAME}=" in environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    return Resource.create({SERVICE_VERSION: VERSION} | ({} if is_named else {SERVICE_NAME: "headrace"}))


def _configured_exporter(environ: Mapping[str, str]) -> SpanExporter:
    wanted = environ.get("OTEL_TRACES_EXPORTER", "").strip() or "otlp"
    name = f"otlp_proto_{_protocol(environ)}" if wanted == "otlp" else wanted
    found = {entry.name: entry for entry in entry_points(group=_EXPORTERS)}
    if name not in found:
        known = ", ".join(f"`{one}`" for one in ("otlp", *sorted(found)))
        raise UsageError(
            f"expected an exporter of traces that is installed ({known}), got: `{name}`",
            hint='`pip install "headrace[otel]"` installs the one for OTLP over HTTP',
        )
    exporter: SpanExporter = found[name].load()()
    return exporter


def _protocol(environ: Mapping[str, str]) -> str:
    """`http/protobuf` is what OpenTelemetry takes if nobody says anything."""
    protocol = environ.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or environ.get("OTEL_EXPORTER_OTLP_PROTOCOL") or "http"
    return protocol.partition("/")[0]
