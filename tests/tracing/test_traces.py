"""Spans of real runs, as an exporter gets them."""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from headrace.actions.clear import clear
from headrace.actions.retry import retry
from headrace.definition import Node, Retry, Workflow
from headrace.handoff import TaskError, TaskResult
from headrace.metrics.catalogue import TRACES_DROPPED
from headrace.store.traced import EndedAttempt, EndedTry
from headrace.testing.engine import Engine
from headrace.trace_context import TracedAttempt, is_tracing_wanted
from headrace.tracing import TraceExporter, trace_exporter
from headrace.tracing.spans import SpanMaker


class Watched:
    """An engine whose traces are kept in memory."""

    def __init__(self, folder, url):
        self.engine = Engine(folder, url)
        self._memory = InMemorySpanExporter()
        self._exporter = TraceExporter(self.engine.store, lambda: SpanMaker(self._memory))
        self._exporter.start()

    def wait_for(self, count):
        """Until so many spans were sent."""
        until = time.monotonic() + 30
        while len(self._memory.get_finished_spans()) < count:
            assert time.monotonic() < until, "the spans did not come"
            time.sleep(0.005)

    def spans(self):
        """Everything that was sent, in that order."""
        self._exporter.stop()
        return self._memory.get_finished_spans()


@pytest.fixture
def watched(tmp_path, prepared_url):
    watched = Watched(tmp_path, prepared_url)
    yield watched
    watched.engine.close()


def flow(*nodes, name="sales"):
    return Workflow(name=name, language="python", nodes=(Node(key="", kind="group"), *nodes))


def job(key, *upstream, **given):
    return Node(key=key, operator="python", upstream=upstream, parent="", **given)


def failing(request):
    error = TaskError(type="ValueError", message="boom", traceback="line 1")
    return TaskResult(task_id=request.task_id, fence=request.fence, outcome="failed", error=error)


def test_a_run_is_a_span_and_each_of_its_tries_is_one_below_it(watched):
    watched.engine.start(flow(job("load"), job("clean", "load")))
    watched.engine.settle()
    load, clean, run = watched.spans()
    assert (run.name, load.name, clean.name) == ("sales", "load", "clean")
    assert run.parent is None
    for span in (load, clean):
        assert span.context.trace_id == run.context.trace_id
        assert span.parent.span_id == run.context.span_id
    assert run.attributes["headrace.workflow"] == "sales"
    assert run.attributes["headrace.outcome"] == "success"
    assert run.attributes["headrace.run.type"] == "manual"
    assert dict(clean.attributes) | {"headrace.run.key": ""} == {
        "headrace.project": "project", "headrace.workflow": "sales", "headrace.run.id": 1, "headrace.run.key": "",
        "headrace.attempt": 1, "headrace.task": "clean", "headrace.operator": "python", "headrace.try": 1,
        "headrace.outcome": "success", "headrace.agent": "engine",
    }  # fmt: skip
    assert run.resource.attributes["service.name"] == "headrace"
    assert run.start_time <= load.start_time <= load.end_time <= clean.end_time <= run.end_time


def test_failed_tries_say_why(watched):
    watched.engine.start(flow(job("load", retry=Retry(limit=1, delay_seconds=30))), {"load": failing})
    watched.engine.settle()
    watched.engine.advance(30)
    watched.engine.settle()
    first, second, run = watched.spans()
    assert [one.attributes["headrace.try"] for one in (first, second)] == [1, 2]
    assert first.context.span_id != second.context.span_id
    assert second.start_time - first.start_time == 30_000_000_000
    assert second.status.status_code is StatusCode.ERROR
    assert second.status.description == "ValueError: boom"
    assert second.events[0].attributes["exception.stacktrace"] == "line 1"
    assert run.status.status_code is StatusCode.ERROR


def test_a_cleared_run_is_another_span_with_what_it_did_again(watched):
    run = watched.engine.start(flow(job("load"), job("clean", "load")))
    watched.engine.settle()
    watched.wait_for(3)
    watched.engine.advance(60)
    clear(watched.engine.store, watched.engine.clock, str(run.id), ["clean"])
    watched.engine.settle()
    _, _, before, clean, again = watched.spans()
    assert (clean.name, clean.parent.span_id) == ("clean", again.context.span_id)
    assert before.context.trace_id == again.context.trace_id
    assert again.start_time - before.start_time == 60_000_000_000


def test_a_second_attempt_is_a_trace_of_its_own(watched):
    run = watched.engine.start(flow(job("load")), {"load": failing})
    watched.engine.settle()
    watched.wait_for(2)
    watched.engine.advance(1)
    retry(watched.engine.store, watched.engine.clock, str(run.id))
    watched.engine.settle()
    _, first, _, second = watched.spans()
    assert (first.attributes["headrace.attempt"], second.attributes["headrace.attempt"]) == (1, 2)
    assert first.context.trace_id != second.context.trace_id


def test_no_span_is_lost_when_there_are_very_many():
    tries = [EndedTry(number, 1, f"t{number}", -1, "python", 1, "success", 5, 9, None, None) for number in range(5000)]
    attempt = EndedAttempt("shop", "sales", 1, "key", "manual", None, 1, "", "success", None, 1, 1, 10, 0, tries)
    memory = InMemorySpanExporter()
    spans = SpanMaker(memory)
    spans.send(attempt)
    spans.close()
    assert len({span.context.span_id for span in memory.get_finished_spans()}) == 5001


def test_an_exporter_that_breaks_does_not_stop_the_next_trace(tmp_path):
    class Broken(SpanMaker):
        is_broken = True

        def send(self, attempt):
            if Broken.is_broken:
                Broken.is_broken = False
                raise RuntimeError("a mistake of the library")
            super().send(attempt)

    engine, memory, dropped = Engine(tmp_path), InMemorySpanExporter(), TRACES_DROPPED.value()
    exporter = TraceExporter(engine.store, lambda: Broken(memory))
    exporter.start()
    for name in ("one", "two"):
        engine.start(flow(job("a"), name=name))
        engine.settle()
    exporter.stop()
    assert [span.name for span in memory.get_finished_spans()] == ["a", "two"]
    assert TRACES_DROPPED.value() == dropped + 1
    engine.close()


@pytest.mark.parametrize(
    ("environ", "is_wanted"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4318/v1/traces"}, True),
        ({"OTEL_TRACES_EXPORTER": "console"}, True),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318", "OTEL_SDK_DISABLED": "true"}, False),
        ({"OTEL_SERVICE_NAME": "etl"}, False),
    ],
)
def test_only_the_usual_variables_switch_it_on(environ, is_wanted):
    assert is_tracing_wanted(environ) is is_wanted


def test_nothing_is_made_and_nothing_imported_unless_asked(tmp_path):
    engine = Engine(tmp_path)
    assert trace_exporter(engine.store, {}) is None
    engine.close()


def test_a_missing_library_is_told_and_no_reason_to_stop(tmp_path, monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "headrace.tracing.spans", None)
    engine = Engine(tmp_path)
    assert trace_exporter(engine.store, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}) is None
    assert 'pip install "headrace[otel]"' in caplog.text
    engine.close()


def test_the_same_run_elsewhere_has_other_ids():
    here = TracedAttempt("shop", "sales", 17, 1, datetime(2026, 2, 3, 4, 5, 6, 7, tzinfo=UTC))
    there = here._replace(created_at=datetime(2026, 2, 3, 4, 5, 6, 8, tzinfo=UTC))
    assert here.trace_id != there.trace_id
    assert here.try_id(5, 1) != here.try_id(5, 2)
    version, trace, span, flags = here.traceparent(5, 1).split("-")
    assert (version, int(trace, 16), int(span, 16), flags) == ("00", here.trace_id, here.try_id(5, 1), "01")
