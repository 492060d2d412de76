"""Real processes that are watched: by Prometheus, by a collector of traces, and by `headrace status`."""

from __future__ import annotations

import json
import re
import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.request import urlopen

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from prometheus_client.parser import text_string_to_metric_families

BODY = """
@task
def hello():
    print('trace', os.environ['TRACEPARENT'])

hello()
"""


class Collector:
    """Takes OTLP over HTTP."""

    def __init__(self):
        self.spans = {}
        self.has_run = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                outer.take(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *args):
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def take(self, body):
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            for scope in resource.scope_spans:
                self.spans |= {span.name: span for span in scope.spans}
        if "flow" in self.spans:
            self.has_run.set()

    def close(self):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def collector():
    collector = Collector()
    yield collector
    collector.close()


@pytest.fixture
def standalone(headrace, collector):
    """A running `headrace standalone` and where its metrics are."""
    headrace.dag(BODY)
    process = headrace.start(
        "standalone", str(headrace.folder / "flows"), "--metrics-port", "0", OTEL_EXPORTER_OTLP_ENDPOINT=collector.url
    )
    seen = headrace.read_until(process, "workflow `flow` appeared")
    yield re.search(r"metrics are at (http://127\.0\.0\.1:\d+/metrics)", seen)[1]
    process.kill()
    process.communicate()


def numbers(url):
    with urlopen(url, timeout=10) as answer:
        text = answer.read().decode()
    return {
        (sample.name.removeprefix("headrace_"), *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_a_run_is_seen_from_the_file_to_its_end(headrace, standalone, collector):
    run_id = str(headrace.json("trigger", "flow")[0]["run_id"])
    log = headrace("logs", run_id, "hello", "--follow").out
    assert collector.has_run.wait(30)
    _compare_with_metrics(numbers(standalone))
    described, code = headrace.json("status", "--check")
    assert (described["healthy"], code) == (True, 0)
    assert {(one["kind"], one["alive"]) for one in described["processes"]} == {("agent", True), ("scheduler", True)}
    _compare_with_traces(log, collector)


def test_a_run_without_a_server_is_traced_as_well(headrace, collector):
    done = headrace("run", headrace.dag(BODY), OTEL_EXPORTER_OTLP_ENDPOINT=collector.url)
    assert done.returncode == 0
    assert collector.spans["hello"].parent_span_id == collector.spans["flow"].span_id


def _compare_with_metrics(found):
    assert found["runs_ended_total", "success"] == 1
    assert found["tries_ended_total", "success"] == 1
    assert found["task_start_lag_seconds_count", "default"] == 1
    assert found["files_loaded_total", "ok"] == 1
    assert (found["zygotes",], found["zygotes_started_total",]) == (1, 1)
    assert found["forks_total",] >= 1
    assert found["processes_alive", "agent"] == 1
    assert found["tick_seconds_count", "scheduler"] > 0
    assert found["database_commits_total",] > 0
    assert found["traces_sent_total",] == 1


def _compare_with_traces(log, collector):
    run, hello = collector.spans["flow"], collector.spans["hello"]
    assert (hello.trace_id, hello.parent_span_id) == (run.trace_id, run.span_id)
    assert f"trace 00-{hello.trace_id.hex()}-{hello.span_id.hex()}-01" in log, "user code can be a child of its try"


def test_a_port_that_is_taken_is_one_sentence(headrace):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = headrace("agent", "--metrics-port", str(taken.getsockname()[1]))
    assert done.returncode == 2
    assert done.err.startswith("error: could not serve metrics on port")
    assert "hint: give each process on a machine a port of its own" in done.err
    assert "Traceback" not in done.err


def test_an_installation_without_anybody_is_not_healthy(headrace):
    assert headrace("db", "upgrade").returncode == 0
    done = headrace("status", "--check")
    assert done.returncode == 1
    assert done.out.splitlines()[0].endswith(": not healthy")
    assert "  no scheduler is alive: no run starts by itself and no retry" in done.out.splitlines()
    assert "    hint: start one with `headrace agent`" in done.out.splitlines()
    described = json.loads(headrace("status", "--json").out)
    assert [one["kind"] for one in described["concerns"]] == ["no_scheduler", "no_agent"]
