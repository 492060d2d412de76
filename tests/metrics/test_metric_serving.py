"""Metrics over HTTP: on loopback, at one path, for one reader after the other."""

from __future__ import annotations

import socket
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from headrace.errors import UsageError
from headrace.metrics.catalogue import STORE_BYTES
from headrace.metrics.instruments import Reading, Sample
from headrace.metrics.serving import MetricsServer


@pytest.fixture
def serve():
    servers = []

    def start(*readings, **given):
        servers.append(MetricsServer("127.0.0.1", 0, readings, **given))
        servers[-1].start()
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


def read(url):
    with urlopen(url, timeout=10) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


def test_prometheus_can_read_everything(serve):
    kind, text = read(serve(lambda: [Reading(STORE_BYTES, [Sample((), 4096)])]).url)
    assert kind == "text/plain; version=0.0.4; charset=utf-8"
    found = {family.name: family for family in text_string_to_metric_families(text)}
    assert found["headrace_store_bytes"].samples[0].value == 4096
    assert found["process_resident_memory_bytes"].samples[0].value > 1_000_000
    assert found["process_open_fds"].samples[0].value >= 3
    assert found["headrace_info"].samples[0].labels["version"]


def test_there_is_nothing_else(serve):
    with pytest.raises(HTTPError) as caught:
        urlopen(serve().url.replace("/metrics", "/"), timeout=10)
    assert caught.value.code == 404
    caught.value.close()


def test_a_mistake_is_an_error_and_not_the_end(serve):
    answers = iter([lambda: 1 / 0, list])
    server = serve(lambda: next(answers)())
    with pytest.raises(HTTPError) as caught:
        urlopen(server.url, timeout=10)
    assert caught.value.code == 500
    caught.value.close()
    assert "headrace_info" in read(server.url)[1]


def test_a_port_that_is_taken_is_said_before_anything_starts():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UsageError) as caught:
            MetricsServer("127.0.0.1", port).start()
    assert f"could not serve metrics on port {port} of `127.0.0.1`" in caught.value.message


def test_the_reading_thread_may_let_go_of_what_it_used(serve):
    ended = []
    server = serve(on_end=lambda: ended.append(True))
    server.stop()
    assert ended == [True]
