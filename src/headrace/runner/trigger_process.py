"""The process in which triggers run: one event loop for all of them. It lives as long as its triggerer does.

Started as `python -m headrace.runner.trigger_process FD STUCK_SECONDS`. A thread listens to the triggerer, so that
questions can be answered and a blocked loop be noticed while the loop runs user code.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import threading
import time
from types import FrameType
from typing import NoReturn

from headrace.authoring.dag.context import Context, enter_task
from headrace.authoring.dag.loading import serve_import_paths
from headrace.handoff import RunTrigger, Stopped, StopTrigger, ToTriggers
from headrace.runner.termination import die_with_parent
from headrace.runner.trigger_line import TriggerLine, current_trigger
from headrace.runner.trigger_output import TriggerOutput, redirect_output
from headrace.runner.trigger_run import Timed, clean_up, failure, failure_of, first_event, kill, log, make
from headrace.runner.watching import watch

_LEAVE_SECONDS = 35.0


class TriggerProcess:
    """Everything but `_listen`, and what it calls, belongs to the event loop's thread."""

    def __init__(self, line: TriggerLine, output: TriggerOutput, stuck_seconds: float) -> None:
        self._line = line
        self._output = output
        self._stuck_seconds = stuck_seconds
        self._look_seconds = min(5.0, stuck_seconds / 4)
        self._running: dict[int, asyncio.Task[None]] = {}
        self._given_up: set[int] = set()
        self._ending: set[int] = set()
        """Asked to stop or over by themselves: nothing may interrupt their clean-up."""
        self._loop = asyncio.get_running_loop()
        self._hung_up = asyncio.Event()
        self._thread = threading.get_ident()
        self._missed_beats = 0

    async def live(self) -> None:
        """Until the triggerer hangs up; then every trigger stops and cleans up."""
        threading.Thread(target=self._listen, name="headrace-line", daemon=True).start()
        await self._hung_up.wait()
        for trigger_id in list(self._running):
            self._stop(trigger_id)
        if self._running:
            await asyncio.wait(self._running.values(), timeout=_LEAVE_SECONDS)

    # ---- on the thread that listens --------------------------------------------------------------------------------

    def _listen(self) -> None:
        asked_at = 0.0
        for messages in self._line.listen(self._look_seconds):
            for message in messages:
                self._loop.call_soon_threadsafe(self._hear, message)
            if time.monotonic() - asked_at >= self._look_seconds:
                asked_at = time.monotonic()
                self._watch()
        self._loop.call_soon_threadsafe(self._hung_up.set)

    def _watch(self) -> None:
        """See whether the loop still turns. Looks are counted, not seconds: the whole process may have been frozen."""
        silent_seconds = self._missed_beats * self._look_seconds
        if silent_seconds > self._stuck_seconds:
            self._break_free(silent_seconds)
        self._missed_beats += 1
        self._loop.call_soon_threadsafe(self._beat)

    def _beat(self) -> None:
        self._missed_beats = 0

    def _break_free(self, seconds: float) -> NoReturn:
        """Fail the trigger that holds the loop, and let a new process go on with the others."""
        task = asyncio.current_task(self._loop)
        culprit = next((trigger_id for trigger_id, one in self._running.items() if one is task), 0)
        place = _place(sys._current_frames().get(self._thread))
        text = f"it blocked all other triggers for {seconds:.0f} s, at {place}"
        if culprit:
            self._line.send(failure(culprit, f"the trigger was given up: {text}"))
        os.write(2, f"the event loop of triggers is stuck at {place}; a new process takes over\n".encode())
        os._exit(70)

    # ---- on the loop -----------------------------------------------------------------------------------------------

    def _hear(self, message: ToTriggers) -> None:
        if isinstance(message, RunTrigger):
            task = self._loop.create_task(Timed(self._run(message), message), name=message.path)
            task.add_done_callback(lambda _: self._forget(message.id))
            self._running[message.id] = task
        elif isinstance(message, StopTrigger) and message.id in self._running:
            if message.is_given_up:
                self._given_up.add(message.id)
            self._stop(message.id)

    def _stop(self, trigger_id: int) -> None:
        if trigger_id not in self._ending:
            self._ending.add(trigger_id)
            # Not now: a task that is cancelled before its first step never takes one, and could not clean up.
            self._loop.call_soon(self._running[trigger_id].cancel)

    async def _run(self, order: RunTrigger) -> None:
        current_trigger.set(order.id)
        _put_on_path(order)
        trigger = None
        try:
            if order.asset:
                await watch(order, self._line.send)
            trigger = await make(order)
            if not order.is_given_up:
                self._line.send(await first_event(order, trigger))
        except asyncio.CancelledError:
            if not self._is_asked_to_stop():
                self._line.send(failure(order.id, f"trigger `{order.path}` cancelled itself"))
        except BaseException as error:
            failed = failure_of(order, error)
            log.error("%s", failed.error.message if failed.error else error)
            self._line.send(failed)
        await self._end(order, trigger)

    def _is_asked_to_stop(self) -> bool:
        task = asyncio.current_task()
        if task is None or task.cancelling() == 0:
            return False
        # Taken back, so that what follows may use time limits.
        task.uncancel()
        return True

    async def _end(self, order: RunTrigger, trigger: object) -> None:
        self._ending.add(order.id)
        if trigger is None:
            return
        if order.is_given_up or order.id in self._given_up:
            await kill(trigger)
        await clean_up(trigger)

    def _forget(self, trigger_id: int) -> None:
        self._output.finish(trigger_id)
        self._given_up.discard(trigger_id)
        self._ending.discard(trigger_id)
        del self._running[trigger_id]
        self._line.send(Stopped(trigger_id=trigger_id))


def _put_on_path(order: RunTrigger) -> None:
    """Modules of the project can be imported; behind everything else, because projects share this process."""
    source = order.request.source
    for folder in (source.root, os.path.dirname(os.path.join(source.root, source.file))):
        if folder and folder not in sys.path:
            sys.path.append(folder)


def _place(frame: FrameType | None) -> str:
    return "an unknown place" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


async def _live(sock: socket.socket, stuck_seconds: float) -> None:
    line = TriggerLine(sock)
    output = redirect_output(line)
    enter_task(Context({}, {}), line)
    await TriggerProcess(line, output, stuck_seconds).live()
    # Without waiting for threads that block: everything that had to be cleaned up is.
    os._exit(0)


def main() -> None:
    """Serve the triggerer at the other end of the given descriptor."""
    die_with_parent(os.getppid())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve_import_paths()
    asyncio.run(_live(socket.socket(fileno=int(sys.argv[1])), float(sys.argv[2])))


if __name__ == "__main__":
    main()
