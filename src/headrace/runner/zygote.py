"""The warm parent process: loads a user's file once, then forks a child for each try.

Started by `start_zygote` with a control socket. It lives as long as that socket: when the
executor is gone, however it went, every process group below this one is killed.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import os
import select
import signal
import socket
import struct
import sys
import warnings
from collections.abc import Callable
from functools import partial
from os import close
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from headrace.authoring import load_file
from headrace.authoring.asking import Asking, enter_loading, leave_loading
from headrace.errors import HeadraceError, LoadError
from headrace.handoff import (
    Answer,
    Ask,
    Exited,
    Fork,
    Forked,
    ForkFailed,
    Load,
    Loaded,
    LoadFailed,
    Reader,
    ToZygote,
    frame,
    send,
    user_traceback,
    value_of,
)
from headrace.runner.child import Rehearsal, Run, empty_rehearsal, live, look_for_numpy, rehearsal_with, rehearse
from headrace.runner.console import flush_console, redirect, set_up_console
from headrace.runner.forking import fork
from headrace.runner.moving import move_code
from headrace.runner.packing import fill_gaps
from headrace.runner.pinning import Pinned, announcing, pinned
from headrace.runner.programs import named, prepare, rehearsal_of, task_runner
from headrace.runner.termination import install_handlers

_PAIR = struct.Struct("ii")
"""Two descriptors as they are sent with a message."""
_REHEARSALS = 10
"""So many that the interpreter has specialized the code which every try runs."""

_OF_EVERY_CHILD = [f"headrace.runner.{name}" for name in ("child", "console", "forking", "termination", "zygote")]
"""Modules of which a child runs more than it rehearses."""


class Zygote:
    """Forks children, and kills what a dead child leaves behind before its process id can be used again."""

    def __init__(self, control: socket.socket, run: Run, file: Any, rehearsal: Rehearsal, limit_bytes: int) -> None:
        self._control = control
        self._run = run
        self._file = file
        self._rehearsal = rehearsal
        self._limit_bytes = limit_bytes
        self._pid = os.getpid()
        self._children: set[int] = set()
        self._reader: Reader[ToZygote] = Reader(ToZygote)
        self._wake_read, self._wake_write = os.pipe()
        self._descriptors = (control.fileno(), self._wake_read, self._wake_write)
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _notice)

    def serve(self) -> NoReturn:
        """Fork and reap until the executor is gone."""
        poller = select.poll()
        poller.register(self._control, select.POLLIN)
        poller.register(self._wake_read, select.POLLIN)
        try:
            while True:
                ready = {descriptor for descriptor, _ in poller.poll()}
                if self._wake_read in ready:
                    self._reap()
                if self._control.fileno() in ready:
                    self._take_orders()
        except (ConnectionError, EOFError):
            self._kill_all()
            os._exit(0)

    def _take_orders(self) -> None:
        data = self._control.recv(4096)
        if not data:
            raise EOFError
        for message in self._reader.feed(data):
            if isinstance(message, Fork):
                self._fork_many(message.count, message.has_time)

    def _fork_many(self, count: int, has_time: bool) -> None:
        for done in range(count):
            try:
                self._fork_one(self._rehearsal if has_time else None)
            except OSError as error:
                message = f"could not start a task process: {error.strerror}"
                send(self._control, ForkFailed(count=count - done, message=message))
                return

    def _fork_one(self, rehearsal: Rehearsal | None) -> None:
        ours, theirs = socket.socketpair()
        output_read, output_write = os.pipe()
        try:
            pid = fork()
            if pid == 0:
                # By their numbers: the library's way to close a socket is a few pages longer.
                for descriptor in (ours.fileno(), output_read, *self._descriptors):
                    close(descriptor)
                live(self._pid, theirs, output_write, self._run, self._file, rehearsal, self._limit_bytes)
            self._children.add(pid)
            rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, _PAIR.pack(ours.fileno(), output_read))
            self._control.sendmsg([frame(Forked(pid=pid))], [rights])
        finally:
            ours.close()
            theirs.close()
            os.close(output_read)
            os.close(output_write)

    def _reap(self) -> None:
        _drain(self._wake_read)
        while self._children:
            # Looked at first and reaped last: until then nobody else can get this process id.
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if found is None:
                return
            _kill_group(found.si_pid)
            _, status = os.waitpid(found.si_pid, 0)
            if found.si_pid in self._children:
                self._children.discard(found.si_pid)
                send(self._control, Exited(pid=found.si_pid, code=os.waitstatus_to_exitcode(status)))

    def _kill_all(self) -> None:
        for pid in self._children:
            _kill_group(pid)
            os.kill(pid, signal.SIGKILL)


def main() -> NoReturn:
    """Load what the first message names, then serve."""
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    install_handlers()
    set_up_console()
    message = Reader[ToZygote](ToZygote).receive(control)
    if not isinstance(message, Load):
        os._exit(0)
    _die_with(control)
    chosen = pinned(message)
    try:
        run, file = _load(message, chosen, control)
    except BaseException as error:
        flush_console()
        send(control, _load_failure(message, chosen.notice, error))
        os._exit(0)
    # Once more, for the case that the user's file installed its own.
    install_handlers()
    _freeze_after_rehearsing(rehearsal := _rehearsal(message, file))
    _live_on(control)
    send(control, Loaded())
    Zygote(control, run, file, rehearsal, message.limit_bytes).serve()


def _load(message: Load, chosen: Pinned, control: socket.socket) -> tuple[Run, Any]:
    source = message.source
    run: Run = named(message.runner) if message.runner else task_runner(source.language)
    load: Callable[[Path, str, bytes | None], Any] = named(message.loader) if message.loader else load_file
    os.chdir(source.root)
    enter_loading(Asking(partial(_ask_executor, control)))
    try:
        file = load(Path(source.root), source.file, chosen.content)
    finally:
        leave_loading()
    if not message.runner:
        prepare(source.language, file)
    _choose_temporary_folder()
    look_for_numpy()
    return announcing(run, chosen.notice), file


def _choose_temporary_folder() -> None:
    """Let the library try out folders once: each child that needs one would otherwise write and delete a file first."""
    if (tempfile := sys.modules.get("tempfile")) is not None:
        # Where there is no such folder, the task that needs one hears of it.
        with contextlib.suppress(OSError):
            tempfile.gettempdir()


def _ask_executor(control: socket.socket, verb: str, args: dict[str, Any]) -> Any:
    """Have a question of the file answered while it is loaded."""
    _live_on(control)
    send(control, Ask(id=0, verb=verb, args=args))
    answer = Reader[ToZygote](ToZygote).receive(control)
    _die_with(control)
    return value_of(answer if isinstance(answer, Answer) else None, verb)


def _freeze_after_rehearsing(rehearsal: Rehearsal) -> None:
    # What the file printed has been handed over by now; what a rehearsal prints is for nobody.
    flush_console()
    redirect(os.open(os.devnull, os.O_WRONLY))
    rehearse(rehearsal, rehearsal.messages * _REHEARSALS)
    _pack()
    move_code(partial(rehearse, rehearsal, rehearsal.messages), _OF_EVERY_CHILD)
    # The interpreter has to get to know the code once more, and what every try does is what it should know last.
    rehearse(rehearsal, rehearsal.messages * _REHEARSALS)
    rehearse(rehearsal, rehearsal.messages[:1])
    _freeze()


def _rehearsal(message: Load, file: Any) -> Rehearsal:
    rehearsal = None if message.runner else rehearsal_of(message.source.language, file)
    return rehearsal_with(*rehearsal) if rehearsal is not None else empty_rehearsal()


def _load_failure(message: Load, notice: str, error: BaseException) -> LoadFailed:
    file = message.source.file
    detail = (isinstance(error, LoadError) and error.detail) or user_traceback(error)
    if notice:
        detail = f"{notice}\n{detail}".rstrip()
    if isinstance(error, HeadraceError):
        return LoadFailed(message=str(error), detail=detail)
    if isinstance(error, SystemExit):
        return LoadFailed(message=f"could not load `{file}`: it called sys.exit({error.code})", detail=detail)
    return LoadFailed(message=f"could not load `{file}`: {type(error).__name__}: {error}", detail=detail)


def _die_with(control: socket.socket) -> None:
    """While user code is loading nobody reads the control socket, so the kernel watches it for us.

    The default action of SIGIO ends the process; the executor sends nothing before it hears that loading is over, so
    the only event there can be is its end.
    """
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    fcntl.fcntl(control, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(control, fcntl.F_SETFL, fcntl.fcntl(control, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([control], [], [], 0)[0]:
        os._exit(0)


def _live_on(control: socket.socket) -> None:
    fcntl.fcntl(control, fcntl.F_SETFL, fcntl.fcntl(control, fcntl.F_GETFL) & ~os.O_ASYNC)


def _freeze() -> None:
    """Keep the garbage collector from touching, and thereby copying, the pages that children share."""
    flush_console()
    # User code may have started threads while loading; children do without them, and must not warn about it.
    warnings.filterwarnings("ignore", category=DeprecationWarning, message=".*fork.*")
    _pack()
    gc.freeze()
    gc.disable()


def _pack() -> None:
    gc.collect()
    fill_gaps()


def _notice(signal_number: int, frame: FrameType | None) -> None:
    """SIGCHLD needs a handler of its own to reach the wake-up pipe."""


def _drain(descriptor: int) -> None:
    try:
        os.read(descriptor, 4096)
    except BlockingIOError:
        return


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return
