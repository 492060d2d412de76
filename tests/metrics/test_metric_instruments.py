"""Counters, gauges and histograms, and the text that Prometheus reads; its own parser is the judge."""

from __future__ import annotations

import sys
import threading

import pytest
from prometheus_client.parser import text_string_to_metric_families

from headrace.metrics.catalogue import FAMILIES
from headrace.metrics.exposition import exposition
from headrace.metrics.instruments import Counter, Family, Gauge, Histogram, Reading, Sample


@pytest.fixture
def hasty_threads():
    """Threads that interrupt each other all the time."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def parsed(*families):
    """What Prometheus makes of it: (name, labels) to value."""
    text = exposition(Reading(family, list(family.samples())) for family in families)
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_a_counter_adds_by_label():
    tries = Counter("tries_total", "Tries.", ("outcome",))
    tries.add("success")
    tries.add("success", count=3)
    tries.add("failed")
    assert parsed(tries) == {("tries_total", "success"): 4, ("tries_total", "failed"): 1}


def test_what_has_no_labels_is_there_from_the_start():
    assert parsed(Counter("lost_total", "Lost."), Gauge("slots", "Slots.")) == {("lost_total",): 0, ("slots",): 0}


def test_a_counter_begins_with_0_where_its_labels_are_known():
    """Otherwise nobody is alerted by the first thing that is counted: a series that begins with 1 has not increased."""
    counter = Counter("lost_total", "", ("kind",), ("agent",))
    counter.expect("scheduler")
    assert [(one.labels, one.value) for one in counter.samples()] == [(("agent",), 0.0), (("scheduler",), 0.0)]
    counter.add("agent")
    counter.expect("agent")
    assert counter.value("agent") == 1.0


def test_a_gauge_is_what_was_last_set():
    slots = Gauge("slots", "Slots.")
    slots.set(4)
    slots.set(2.5)
    assert parsed(slots) == {("slots",): 2.5}


def test_a_histogram_cumulates_its_buckets():
    lag = Histogram("lag_seconds", "Lag.", bounds=(0.1, 1.0))
    for value in (0.05, 0.1, 0.5, 7.0):
        lag.observe(value)
    assert parsed(lag) == {
        ("lag_seconds_bucket", "0.1"): 2,
        ("lag_seconds_bucket", "1.0"): 3,
        ("lag_seconds_bucket", "+Inf"): 4,
        ("lag_seconds_count",): 4,
        ("lag_seconds_sum",): pytest.approx(7.65),
    }


def test_labels_and_help_may_hold_anything():
    odd = 'a "pool"\\with\nlines'
    family = Family("odd", "gauge", "Two\nlines \\ here.", ("pool",))
    (found,) = text_string_to_metric_families(exposition([Reading(family, [Sample((odd,), 1)])]))
    assert found.samples[0].labels == {"pool": odd}
    assert found.documentation == "Two\nlines \\ here."


def test_additions_of_many_threads_are_all_there(hasty_threads):
    count, lag = Counter("n_total", "N.", ("who",)), Histogram("lag_seconds", "Lag.")

    def work():
        for _ in range(2000):
            count.add("x")
            lag.observe(0.2)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (count.value("x"), lag.count()) == (8000, 8000)


def test_names_follow_the_conventions_of_prometheus():
    names = [family.name for family in FAMILIES]
    assert len(set(names)) == len(names)
    for family in FAMILIES:
        assert family.name.startswith(("headrace_", "process_"))
        assert family.name.endswith("_total") == (family.kind == "counter"), family.name
        assert family.meaning.endswith(".")
