"""The line between the process of triggers and its triggerer, when the latter is killed."""

from __future__ import annotations

import socket

import pytest

from headrace.handoff import Fired
from headrace.runner.channel import Line
from headrace.runner.trigger_line import TriggerLine


@pytest.fixture
def torn():
    """An end of a line whose other end is gone, with something that it never read."""
    ours, theirs = socket.socketpair()
    with ours:
        ours.sendall(b"never read")
        theirs.close()
        yield ours


def test_who_was_killed_before_it_had_read_everything_has_hung_up(torn):
    assert list(TriggerLine(torn).listen(0.1)) == []


def test_so_it_has_for_a_task(torn):
    assert Line(torn, 1000).receive() is None


def test_what_is_said_is_heard_until_then():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        TriggerLine(theirs).send(Fired(trigger_id=1))
        assert ours.recv(1000)
        theirs.shutdown(socket.SHUT_RDWR)
        assert list(TriggerLine(ours).listen(0.1)) == []
