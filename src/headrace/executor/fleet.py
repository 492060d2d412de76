"""The warm parents of the local executor: started when needed, heard, replaced when they die, dropped when idle."""

from __future__ import annotations

import logging
import signal
import socket
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Protocol

from headrace.errors import HeadraceError
from headrace.executor import verdicts
from headrace.executor.contract import Contents, Questions
from headrace.executor.loop import Loop
from headrace.executor.options import LocalOptions, Program
from headrace.executor.questions import answer_loading
from headrace.executor.workers import Try, Worker, signal_group
from headrace.executor.zygotes import Zygote, ZygoteKey, zygote_key
from headrace.handoff import Ask, Exited, Forked, ForkFailed, FromZygote, Loaded, LoadFailed, Source
from headrace.metrics.catalogue import FORKS, FORKS_FAILED, ZYGOTES, ZYGOTES_STARTED
from headrace.processes import is_child

log = logging.getLogger("headrace.executor")

_IDLE_CHECK = "idle check"


class Owner(Protocol):
    """What the fleet needs of the executor that it belongs to."""

    def dispatch(self, zygote: Zygote) -> None: ...

    def hear(self, zygote: Zygote, worker: Worker) -> None: ...

    def retire(self, zygote: Zygote, worker: Worker) -> None: ...

    def exited(self, zygote: Zygote, worker: Worker, code: int | None) -> None: ...

    def give_up(self, attempts: Sequence[Try], result_of: verdicts.Verdict) -> None: ...

    def wait_again(self, attempts: Sequence[Try]) -> None: ...


class Fleet:
    """One warm parent per revision of a file."""

    def __init__(
        self,
        owner: Owner,
        loop: Loop,
        options: LocalOptions,
        programs: Mapping[str, Program],
        contents: Contents | None,
        questions: Questions | None,
    ) -> None:
        self._owner = owner
        self._loop = loop
        self._options = options
        self._programs = programs
        self._contents = contents
        self._questions = questions
        self._zygotes: dict[ZygoteKey, Zygote] = {}

    def zygote_of(self, source: Source) -> Zygote:
        """The warm parent for this source, started now if there is none."""
        zygote = self._zygotes.get(zygote_key(source))
        if zygote is None:
            self._make_room()
            zygote = self._launch(source)
        return zygote

    def forget_waiting(self) -> None:
        """Start nothing any more."""
        for zygote in self._zygotes.values():
            zygote.waiting.clear()

    def halt(self, number: signal.Signals) -> int:
        """Signal the children that work on a try; SIGKILL only reaches those that had SIGTERM. Any thread may call it.

        The thread that owns the children may be waiting for something else and know nothing of their ends: a process
        id counts only as long as its process is a child of the warm parent.
        """
        halted = 0
        for zygote in list(self._zygotes.values()):
            for pid, worker in list(zygote.children.items()):
                attempt = worker.current
                if attempt is not None and attempt.may_get(number) and is_child(pid, zygote.process.pid):
                    attempt.stop_reason = attempt.stop_reason or "halt"
                    signal_group(pid, number)
                    halted += 1
        return halted

    def close(self) -> None:
        """Kill everything."""
        for zygote in list(self._zygotes.values()):
            self._lose(zygote)

    def _launch(self, source: Source) -> Zygote:
        zygote = Zygote(source, self._content_of(source), self._programs.get(source.language), self._options)
        self._zygotes[zygote.key] = zygote
        ZYGOTES_STARTED.add()
        ZYGOTES.set(len(self._zygotes))
        self._loop.watch(zygote.output, partial(self._read_output, zygote))
        self._loop.watch_connection(zygote.control, partial(self._hear, zygote))
        seconds = self._options.load_timeout_seconds
        message = f"could not load `{source.file}`: it took longer than {seconds:g} s"
        self._loop.timers.set(zygote, time.monotonic() + seconds, partial(self._lose, zygote, message))
        self._schedule_idle_check()
        return zygote

    def _content_of(self, source: Source) -> bytes | None:
        if self._contents is None or not source.revision:
            return None
        try:
            return self._contents(source)
        except HeadraceError as error:
            # Needed only if the file has changed, and then the try's log says that there was nothing.
            log.warning("could not look up the saved revision of `%s`: %s", source.file, error.message)
            return None
        except Exception:
            log.exception("could not look up the saved revision of `%s`", source.file)
            return None

    def _remove(self, zygote: Zygote) -> None:
        del self._zygotes[zygote.key]
        ZYGOTES.set(len(self._zygotes))
        self._loop.timers.drop(zygote)
        self._loop.forget(zygote.output)
        self._loop.forget(zygote.control.socket)

    # What a warm parent says

    def _hear(self, zygote: Zygote) -> None:
        if zygote.control.is_closed:
            return
        for message in zygote.control.receive():
            self._take(zygote, message)
            if zygote.control.is_closed:
                return
        if zygote.control.is_closed:
            self._lose(zygote)

    def _take(self, zygote: Zygote, message: FromZygote) -> None:
        if isinstance(message, Forked):
            self._adopt(zygote, message.pid)
        elif isinstance(message, Exited):
            self._bury(zygote, message)
        elif isinstance(message, Ask):
            zygote.control.send(answer_loading(self._questions, message, zygote.masker))
            self._loop.update(zygote.control)
        elif isinstance(message, Loaded):
            zygote.is_loaded = True
            self._loop.timers.drop(zygote)
            self._owner.dispatch(zygote)
        elif isinstance(message, LoadFailed):
            self._lose(zygote, message.message, message.detail)
        else:
            self._fork_failed(zygote, message)

    def _adopt(self, zygote: Zygote, pid: int) -> None:
        try:
            sock = socket.socket(fileno=zygote.control.take_descriptor())
            worker = Worker(pid, sock, zygote.control.take_descriptor(), self._options.limit_bytes)
        except IndexError:
            self._lose(zygote, "could not start a task process: this process has too many open files")
            return
        zygote.adopt(worker)
        FORKS.add()
        self._loop.watch_connection(worker.connection, partial(self._owner.hear, zygote, worker))
        if zygote.waiting:
            self._owner.dispatch(zygote)

    def _bury(self, zygote: Zygote, message: Exited) -> None:
        worker = zygote.children.pop(message.pid, None)
        if worker is not None:
            self._owner.exited(zygote, worker, message.code)

    def _fork_failed(self, zygote: Zygote, message: ForkFailed) -> None:
        zygote.forks_failed(message.count)
        FORKS_FAILED.add(count=message.count)
        attempts = [zygote.waiting.popleft() for _ in range(min(message.count, len(zygote.waiting)))]
        self._owner.give_up(attempts, partial(verdicts.not_started, message=message.message))

    def _read_output(self, zygote: Zygote) -> None:
        if not zygote.control.is_closed and zygote.read_output() is False:
            self._loop.forget(zygote.output)

    # How a warm parent ends

    def _lose(self, zygote: Zygote, message: str = "", detail: str = "") -> None:
        """It is dead or useless: its children die with it, and what waited for it fails or starts over."""
        self._remove(zygote)
        _kill_children(zygote)
        code = zygote.kill()
        output = zygote.output_text()
        attempts = list(zygote.waiting)
        zygote.waiting.clear()
        children = list(zygote.children.values())
        zygote.children.clear()
        for worker in children:
            self._owner.exited(zygote, worker, None)
        zygote.close()
        if message or not zygote.has_forked:
            message = message or f"could not load `{zygote.source.file}`: {_how_it_ended(code)}"
            if output:
                detail = f"{detail}\noutput while loading:\n{output}".lstrip("\n")
            message, detail = zygote.masker.mask_text(message), zygote.masker.mask_text(detail)
            self._owner.give_up(attempts, partial(verdicts.not_loaded, message=message, detail=detail))
        else:
            self._owner.wait_again(attempts)

    def _make_room(self) -> None:
        """Drop the warm parents that were idle longest; busy ones are never dropped."""
        idle = sorted((zygote for zygote in self._zygotes.values() if not zygote.is_busy), key=lambda z: z.used_at)
        surplus = len(self._zygotes) - self._options.max_zygotes + 1
        for zygote in idle[: max(0, surplus)]:
            self._lose(zygote)

    def _schedule_idle_check(self) -> None:
        if self._zygotes:
            oldest = min(zygote.used_at for zygote in self._zygotes.values())
            seconds = min(self._options.spare_idle_seconds, self._options.zygote_idle_seconds)
            at = max(time.monotonic() + seconds / 4, oldest + seconds)
            self._loop.timers.set(_IDLE_CHECK, at, self._drop_idle)

    def _drop_idle(self) -> None:
        now = time.monotonic()
        for zygote in list(self._zygotes.values()):
            if zygote.is_busy or not zygote.is_loaded:
                continue
            if now - zygote.used_at >= self._options.zygote_idle_seconds:
                self._lose(zygote)
            elif now - zygote.used_at >= self._options.spare_idle_seconds:
                for worker in [*zygote.spares, *zygote.idle]:
                    self._owner.retire(zygote, worker)
        self._schedule_idle_check()


def _kill_children(zygote: Zygote) -> None:
    for pid in zygote.children:
        signal_group(pid, signal.SIGKILL)


def _how_it_ended(code: int) -> str:
    if code < 0:
        return f"the process was killed by signal {-code} ({signal.strsignal(-code)}) while loading it"
    return f"the process left with exit code {code} while loading it"
