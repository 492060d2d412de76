"""What an executor and a warm parent process say to each other on their control socket."""

from __future__ import annotations

from msgspec.structs import replace

from headrace.definition import Data
from headrace.handoff.messages import Answer, Ask, Source, TaskRequest

MESSAGE_LIMIT_BYTES = 50 * 1024 * 1024
"""The largest message that a task process may send, unless the executor says otherwise."""


def may_reuse(request: TaskRequest) -> bool:
    """Whether a process may serve this request and others; without an explicit word each try gets a fresh one."""
    return request.node.isolation in ("reuse", "programs")


def reusing(request: TaskRequest) -> TaskRequest:
    """The same request for a process that serves others as well, whatever the workflow says."""
    return replace(request, node=replace(request.node, isolation="reuse"))


class Load(Data, frozen=True, kw_only=True, tag="load"):
    """The first message to a warm parent: load this file and be ready to fork."""

    source: Source
    loader: str = ""
    """`module:function` instead of the loader that belongs to the file's suffix."""
    runner: str = ""
    """`module:function` instead of the task runner that belongs to the source's language."""
    limit_bytes: int = MESSAGE_LIMIT_BYTES
    content: bytes | None = None
    """What was kept of the source's revision, for the case that the file is another one by now."""


class Fork(Data, frozen=True, kw_only=True, tag="fork"):
    """Fork this many children now; each is announced by its own `Forked`."""

    count: int = 1
    has_time: bool = True
    """Whether they are forked ahead of need on a machine with time to spare, so that they may rehearse."""


class Loaded(Data, frozen=True, kw_only=True, tag="loaded"):
    """The file is loaded, forks may be asked for."""


class LoadFailed(Data, frozen=True, kw_only=True, tag="load_failed"):
    """The file cannot be loaded; the parent process leaves after this message."""

    message: str
    detail: str = ""
    """The user's own traceback, if there is one."""


class Forked(Data, frozen=True, kw_only=True, tag="forked"):
    """A child waits for its request. Comes with two descriptors: its socket and the read end of its output."""

    pid: int


class ForkFailed(Data, frozen=True, kw_only=True, tag="fork_failed"):
    """The operating system refused so many forks."""

    count: int
    message: str


class Exited(Data, frozen=True, kw_only=True, tag="exited"):
    """A child is gone and so is everything that was left in its process group."""

    pid: int
    code: int
    """The exit code, or the negative number of the signal that killed it."""


ToZygote = Load | Fork | Answer
FromZygote = Loaded | LoadFailed | Forked | ForkFailed | Exited | Ask
"""Questions and answers: what a file wants to know while it is loaded."""
