"""A forked child of a warm parent: waits for a request, runs it, reports, and leaves or waits for the next one.

What a child calls once is imported by its own name: to look it up in a module for the first time is to write to three
pages more.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Callable, Iterable
from gc import enable as enable_garbage_collection
from os import _exit, setsid
from signal import set_wakeup_fd
from typing import Any, NamedTuple, NoReturn, cast

from headrace.definition import Node
from headrace.handoff import (
    MESSAGE_LIMIT_BYTES,
    Channel,
    RunContext,
    Source,
    Start,
    TaskRequest,
    TaskResult,
    frame,
    may_reuse,
)
from headrace.runner.channel import Line, SocketChannel
from headrace.runner.console import flush_console, redirect
from headrace.runner.descendants import adopt_orphans, has_descendants
from headrace.runner.termination import (
    TaskTerminated,
    become_task_process,
    die_with_parent,
    listen,
    stop_listening,
)
from headrace.runner.trying import framed_result, run_guarded
from headrace.trace_context import VARIABLE as TRACEPARENT
from headrace.trace_context import TracedAttempt, is_tracing_wanted

Run = Callable[[Any, TaskRequest, Channel], TaskResult]

reseed: Callable[[], None] | None = None
"""Gives a process random numbers of its own. Python's `random` does so by itself after a fork, numpy does not."""


def live(
    parent: int, sock: socket.socket, output: int, run: Run, file: Any, rehearsal: Rehearsal | None, limit_bytes: int
) -> NoReturn:
    """The whole life of a child, from right after the fork. Never returns into the parent's code."""
    try:
        setsid()
        die_with_parent(parent)
        if rehearsal is not None:
            # Printed lines of a rehearsal end in the parent's output, which is nowhere.
            rehearse(rehearsal, rehearsal.messages[:1])
            flush_console()
        _become_task_process(output)
        _serve(Line(sock, limit_bytes), run, file)
    except BaseException:
        # Stopped while idle, or the supervisor is gone: nobody is left who could be told anything.
        _exit(1)
    _exit(0)


def _become_task_process(output: int) -> None:
    redirect(output)
    set_wakeup_fd(-1)
    become_task_process()
    if reseed is not None:
        reseed()
    # The parent's objects are frozen, so a collection looks only at what this task makes.
    enable_garbage_collection()


def look_for_numpy() -> None:
    """In the parent, after it has loaded what its children use: find out what they have to reseed."""
    global reseed
    random = getattr(sys.modules.get("numpy"), "random", None)
    reseed = None if random is None else random.seed


def _serve(line: Line, run: Run, file: Any) -> None:
    while isinstance(message := line.receive(), Start):
        is_leaving = _run_one(line, run, file, message.request)
        if is_leaving:
            return
        listen()


def _run_one(line: Line, run: Run, file: Any, request: TaskRequest) -> bool:
    """Whether this process leaves now."""
    channel = SocketChannel(line)
    try:
        _tell_trace(request)
        if request.node.isolation == "programs":
            adopt_orphans()
        result = run_guarded(run, file, request, channel)
        stop_listening()
    except TaskTerminated:
        # The signal came in the moment between the runner's last instruction and here.
        result = TaskResult(task_id=request.task_id, fence=request.fence, outcome="stopped")
    signal.setitimer(signal.ITIMER_REAL, 0)
    is_leaving = not may_reuse(request) or (request.node.isolation == "programs" and has_descendants())
    data = framed_result(request, result, line.limit_bytes, is_leaving)
    flush_console()
    line.send(data)
    return is_leaving


def _tell_trace(request: TaskRequest) -> None:
    """Let spans that user code makes be children of the try's own."""
    run = request.run
    if is_tracing_wanted(os.environ) and run.created_at is not None:
        attempt = TracedAttempt(run.project, run.workflow, run.run_id, run.attempt_number, run.created_at)
        os.environ[TRACEPARENT] = attempt.traceparent(request.task_id, request.fence)


class Rehearsal(NamedTuple):
    """Tries that do nothing, by the same code that runs real ones."""

    run: Run
    file: Any
    messages: tuple[bytes, ...]
    """The requests as they would arrive: first for what every try does, then for what many do."""


class _Supervisor:
    """The other end of a rehearsal's line. No socket: making one is more than a try does, in pages to copy."""

    def __init__(self, message: bytes) -> None:
        self._message = message

    def recv(self, limit_bytes: int) -> bytes:
        message, self._message = self._message, b""
        return message

    def sendall(self, data: bytes) -> None:
        """Nobody wants to know."""


def rehearsal_with(run: Run, file: Any, *requests: TaskRequest) -> Rehearsal:
    """A rehearsal of these requests."""
    return Rehearsal(run, file, tuple(frame(Start(request=request)) for request in requests))


def rehearse(rehearsal: Rehearsal, messages: Iterable[bytes]) -> None:
    """Go through the motions of tries without user code.

    In the parent: what the interpreter and the JSON library prepare on first use is prepared once, in memory that all
    share. In a child that waits for work: every page that a try writes to is copied before the try, not during it.
    Only what every try does is rehearsed there, because a page that the try does not need is copied for nothing.
    """
    for message in messages:
        supervisor = cast(socket.socket, _Supervisor(message))
        _serve(Line(supervisor, MESSAGE_LIMIT_BYTES), rehearsal.run, rehearsal.file)


def empty_rehearsal() -> Rehearsal:
    """For a language that has none of its own."""
    request = TaskRequest(
        task_id=0,
        fence=0,
        key="rehearsal",
        node=Node(key="rehearsal"),
        source=Source(root="/", file="", language=""),
        run=RunContext(project="", workflow="rehearsal"),
    )
    return rehearsal_with(_do_nothing, None, request)


def _do_nothing(file: None, request: TaskRequest, channel: Channel) -> TaskResult:
    return TaskResult(task_id=request.task_id, fence=request.fence, outcome="success")
