"""What happens in a task process when it is told to stop, and how it dies with its parent.

The handlers are installed once, in the warm parent; a forked child only flips a flag. Every call that a child makes
before its task begins copies memory pages that it shares with its parent, and that is most of what a fork costs.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from os import getppid
from types import FrameType, TracebackType

_PR_SET_PDEATHSIG = 1
_INTERRUPTING = (signal.SIGTERM, signal.SIGALRM)

# Looked up before the first fork, so that no child pays for it.
prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None

_is_listening = False
_is_task_process = False


class TaskTerminated(BaseException):
    """Raised in the main thread of a task process on SIGTERM: clean up and leave, SIGKILL follows soon."""


def install_handlers() -> None:
    """Have SIGTERM and SIGINT ignored here and obeyed in task processes.

    Programs that either of them starts inherit the system's default actions, which SIG_IGN would have taken away.
    """
    signal.signal(signal.SIGTERM, _on_sigterm)
    signal.signal(signal.SIGINT, _on_sigint)


def _leave_signals_to_user_code() -> None:
    """In a process that a task forks, such as a worker of `multiprocessing.Pool`: SIGTERM ends it, as usual."""
    if _is_task_process and signal.getsignal(signal.SIGTERM) is _on_sigterm:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


os.register_at_fork(after_in_child=_leave_signals_to_user_code)


def become_task_process() -> None:
    """Obey signals from now on."""
    global _is_task_process
    _is_task_process = True
    listen()


def listen() -> None:
    """Let the next SIGTERM raise TaskTerminated."""
    global _is_listening
    _is_listening = True


def stop_listening() -> None:
    """Finish undisturbed by SIGTERM."""
    global _is_listening
    _is_listening = False


def _on_sigterm(signal_number: int, frame: FrameType | None) -> None:
    if _is_listening:
        # A second SIGTERM must not break the clean-up that the first one starts.
        stop_listening()
        raise TaskTerminated("the task was told to stop")


def _on_sigint(signal_number: int, frame: FrameType | None) -> None:
    if _is_task_process:
        raise KeyboardInterrupt


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent is gone. Leaves at once if it is gone already."""
    if prctl is not None:
        prctl(_PR_SET_PDEATHSIG, 9, 0, 0, 0)
    if getppid() != parent:
        os._exit(1)


class Shielded:
    """Inside, no signal handler interrupts the main thread: a message is sent or received whole or not at all."""

    def __enter__(self) -> None:
        try:
            signal.pthread_sigmask(signal.SIG_BLOCK, _INTERRUPTING)
        except BaseException:
            # The handler of a signal that came just before runs in this call, after the signals were blocked.
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _INTERRUPTING)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _INTERRUPTING)
