"""Two processes of one kind and name: the second one is started, and says that nobody can tell them apart."""

from __future__ import annotations

import os
import subprocess

import pytest

from headrace.actions.parts import Parts
from headrace.actions.serving import Serving
from headrace.clock import to_micros
from headrace.processes import place
from headrace.settings import load_settings
from headrace.store import extend_lease, register, resign


class Registered:
    """A server that only has a lease."""

    def __init__(self, parts, kind="agent", name="etl-1", at="elsewhere/boot/namespace", pid=7):
        self._parts = parts
        self._given = {"kind": kind, "name": name, "place": at, "pid": pid, "slots": 8, "queues": ("default",)}
        self.id = 0

    def start(self):
        now = to_micros(self._parts.clock.now())
        work = {**self._given, "now": now, "lease_micros": 15_000_000}
        self.id = self._parts.store.transact(lambda tx: register(tx, **work))

    def stop(self):
        pass


@pytest.fixture
def parts(prepared_url, tmp_path):
    parts = Parts.open(load_settings(tmp_path, {}), prepared_url)
    yield parts
    parts.store.dispose()


@pytest.fixture
def warnings(parts, caplog):
    """What an agent `etl-1` says when it is started."""

    def start():
        Serving(parts, [Registered(parts, at=place(), pid=os.getpid())]).start()
        return [record.getMessage() for record in caplog.records if record.name == "headrace.serving"]

    return start


def test_a_live_process_of_the_same_kind_and_name_is_told(parts, warnings):
    Registered(parts).start()
    (line,) = warnings()
    assert line.startswith(
        "another agent `etl-1` is alive on host `elsewhere` (process 7): nobody can tell the two apart"
    )
    assert "hint: give each a `--name` of its own; if the other was killed, it is forgotten within 15 s" in line


def test_one_that_lives_on_this_machine_is_told_without_talk_of_its_death(parts, warnings):
    Registered(parts, at=place(), pid=os.getppid()).start()
    (line,) = warnings()
    assert f"(process {os.getppid()})" in line and line.endswith("(hint: give each a `--name` of its own)")


def test_others_are_not(parts, warnings):
    Registered(parts, name="etl-2").start()
    Registered(parts, kind="scheduler").start()
    assert warnings() == []


def test_nor_is_the_one_that_was_here_before(parts, warnings):
    """It is dead; or it had the number of this process, as the first one in a container does."""
    dead = subprocess.Popen(["true"])
    dead.wait()
    Registered(parts, at=place(), pid=dead.pid).start()
    Registered(parts, at=place(), pid=os.getpid()).start()
    assert warnings() == []


def test_nor_is_one_that_has_left_or_is_about_to(parts, warnings):
    gone, stopping = Registered(parts), Registered(parts, pid=8)
    now = to_micros(parts.clock.now())
    for one in (gone, stopping):
        one.start()
    parts.store.transact(lambda tx: resign(tx, gone.id, now))
    parts.store.transact(lambda tx: extend_lease(tx, stopping.id, now, 15_000_000, stopping_at=now))
    assert warnings() == []
