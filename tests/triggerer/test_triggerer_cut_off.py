"""A triggerer that cannot reach the database ends its triggers before others are given them, and comes back."""

from __future__ import annotations

import signal
import threading
import time

import pytest
from waiting_tasks import Waiting, step_until

from headrace.processes import is_alive

LEASE_SECONDS = 3.0
LONG_SECONDS = 30.0


@pytest.fixture
def server(postgres_server, prepared_postgres_url):
    """The server of this worker, which a test may stop: it runs again before the next one."""
    yield postgres_server
    postgres_server.start()


@pytest.fixture
def waiting(server, prepared_postgres_url, tmp_path):
    waiting = Waiting(tmp_path, prepared_postgres_url)
    yield waiting
    waiting.store.dispose()


def watched(pid):
    """A thread that lives as long as the process; one that outlives its lease gives an error, which fails the test."""

    def watch():
        until = time.monotonic() + LEASE_SECONDS
        while is_alive(pid):
            assert time.monotonic() < until, "the process has outlived its lease"
            threading.Event().wait(0.01)

    thread = threading.Thread(target=watch)
    thread.start()
    return thread


def test_triggers_end_before_the_lease_and_begin_anew_afterwards(server, waiting, caplog):
    triggerer = waiting.triggerer(lease_seconds=LEASE_SECONDS, renew_seconds=0.1)
    triggerer.start()
    waiting.start(a={"do": "wait"})
    step_until(triggerer, lambda: "begins" in waiting.log("a"))
    pid = triggerer.child_pid
    server.stop()
    end = watched(pid)
    step_until(triggerer, lambda: not end.is_alive())
    triggerer.step(0.0)
    assert "cleaned up wait" in waiting.log("a")
    assert triggerer.running == 0 and triggerer.child_pid is None
    assert "could not renew its lease" in caplog.text
    server.start()
    step_until(triggerer, lambda: waiting.log("a").count("begins") == 2)
    assert waiting.states() == {"a": "deferred"}
    triggerer.stop()


def test_triggers_end_also_while_the_triggerer_hangs(server, waiting):
    """Nobody steps: that is how a thread looks which waits for a database that does not answer."""
    triggerer = waiting.triggerer(lease_seconds=LEASE_SECONDS, renew_seconds=0.1)
    triggerer.start()
    waiting.start(a={"do": "wait"})
    step_until(triggerer, lambda: "begins" in waiting.log("a"))
    pid = triggerer.child_pid
    server.stop()
    watched(pid).join()
    server.start()
    step_until(triggerer, lambda: waiting.log("a").count("begins") == 2, LONG_SECONDS)
    triggerer.stop()


def test_a_trigger_that_was_halted_for_a_lease_which_was_renewed_after_all_goes_on(waiting):
    """The thread that owns it was busy with something else all the time, and has to find out by itself."""
    triggerer = waiting.triggerer(lease_seconds=60.0)
    triggerer.start()
    waiting.start(a={"do": "wait"})
    step_until(triggerer, lambda: "begins" in waiting.log("a"))
    end = watched(triggerer.child_pid)
    triggerer._halt(signal.SIGTERM)
    end.join()
    step_until(triggerer, lambda: waiting.log("a").count("begins") == 2)
    triggerer.stop()
