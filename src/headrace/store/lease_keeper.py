"""Keeps a lease: one thread renews it, and another one ends in time what runs under it.

Nobody can tell a process that is dead from one that is cut off: when its lease has run out, others do its work. So
whoever cannot renew a lease must have ended that work by then. The thread that sees to it never waits for the database,
because a connection that was cut may keep every other thread waiting.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable

from headrace.clock import Clock
from headrace.errors import StoreError
from headrace.metrics.catalogue import LEASES_LOST, LEASES_RENEWED, RENEWALS_FAILED, STOPPED_IN_TIME
from headrace.store.store import Store

_log = logging.getLogger("headrace.leases")

_SAFE_SHARE = 0.75
"""After this part of a lease without a renewal, what runs under it is asked to end …"""
_GRACE_SHARE = 0.15
"""… and killed after this part. The rest is for processes to die, and for clocks that disagree."""
_RETRY_SHARE = 0.1
_JOIN_SECONDS = 5.0
_CORRECT_SECONDS = 60.0

Halt = Callable[[signal.Signals], int]
"""SIGTERM: ask everything that runs to end; SIGKILL: kill what was asked. How much that was. Called by any thread."""


class LeaseKeeper:
    """`begin` with each new lease, `start` and `stop` once. All methods may be called by any thread.

    Renewals that are meant to be rarer than the lease lasts do not tell who is cut off: then nothing is ended.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        kind: str,
        name: str,
        seconds: float,
        renew_seconds: float,
        grace_seconds: float,
        extend: Callable[[], bool],
        halt: Halt,
        is_exclusive: bool = False,
    ) -> None:
        """`extend` renews the lease in the store; False: others were told that its holder is gone.

        Leases end by the clock, which is corrected from time to time. An exclusive holder works for something for which
        nobody else does, so that nothing has to be ended in time.
        """
        self._store = store
        self._clock = clock
        self._kind = kind
        for counter in (LEASES_LOST, RENEWALS_FAILED, STOPPED_IN_TIME):
            counter.expect(kind)
        self._holder = f"{kind} `{name}`"
        self._seconds = seconds
        self._renew_seconds = renew_seconds
        self._extend = extend
        self._halt = halt
        self.grace_seconds = min(grace_seconds, seconds * _GRACE_SHARE)
        """Between asking what runs to end and killing it."""
        self._renewed_at = 0.0
        self._corrected_at = time.monotonic()
        self._is_exclusive = is_exclusive
        self._is_guarded = False
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self.is_lost = threading.Event()
        """Others were told that the holder is gone; it needs a new lease."""

    @property
    def is_safe(self) -> bool:
        """Whether work may be started: nobody else can have been given it."""
        return not self._is_guarded or self._safe_seconds() > 0

    def begin(self, at: float) -> None:
        """A new lease was asked for at this time of the monotonic clock."""
        self._renewed_at = at
        self.is_lost.clear()

    def start(self, on_renewed: Callable[[], None]) -> None:
        """Begin to renew and to watch; once only. `on_renewed` is called after each renewal."""
        if self._threads:
            return
        self._is_guarded = not self._is_exclusive and self._renew_seconds < self._seconds * _SAFE_SHARE
        renewer = threading.Thread(target=self._renew_forever, args=(on_renewed,), name="headrace-lease", daemon=True)
        self._threads.append(renewer)
        if self._is_guarded:
            self._threads.append(threading.Thread(target=self._guard, name="headrace-lease-guard", daemon=True))
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Renew no more."""
        self._stop.set()
        for thread in self._threads:
            # One that waits for a database which does not answer is not waited for.
            thread.join(_JOIN_SECONDS)

    def renew(self) -> bool:
        """Renew once; False: it is lost. Raises what the store raises."""
        at = time.monotonic()
        is_held = self._extend()
        if is_held:
            self._renewed_at = at
            LEASES_RENEWED.add(self._kind)
        if not is_held or at > self._corrected_at + _CORRECT_SECONDS:
            # A clock that was set back makes every lease end before it begins.
            self._store.correct(self._clock)
            self._corrected_at = at
        if not is_held:
            LEASES_LOST.add(self._kind)
            self.is_lost.set()
        return is_held

    def _renew_forever(self, on_renewed: Callable[[], None]) -> None:
        wait = self._renew_seconds
        while not self._stop.wait(wait):
            wait = self._renew_seconds
            try:
                is_held = self.renew()
            except StoreError as error:
                RENEWALS_FAILED.add(self._kind)
                wait = min(wait, self._seconds * _RETRY_SHARE, self._store.outage.met(error))
                continue
            except Exception:
                # A mistake of ours; if it stays, the other thread ends everything in time.
                _log.exception("%s could not renew its lease", self._holder)
                continue
            on_renewed()
            if is_held:
                # From when it was asked for: an answer that took long must not make the next renewal too late.
                wait = max(0.0, self._renewed_at + self._renew_seconds - time.monotonic())
            else:
                self._halt(signal.SIGTERM)
                self._kill_after_grace()
        self._store.close()

    def _guard(self) -> None:
        while not self._stop.wait(max(0.0, self._safe_seconds())):
            if not self.is_safe:
                self._end_in_time()

    def _end_in_time(self) -> None:
        silent = time.monotonic() - self._renewed_at
        if count := self._halt(signal.SIGTERM):
            STOPPED_IN_TIME.add(self._kind, count=count)
            message = "%s could not renew its lease for %.1f s (limit %g s): what it runs is stopped (%d)"
            _log.warning(message, self._holder, silent, self._seconds, count)
        self._kill_after_grace()
        # Whatever was about to start while this began, but nothing that starts under a renewed lease.
        while not self._stop.wait(self._seconds * _RETRY_SHARE / 2) and not self.is_safe:
            self._halt(signal.SIGTERM)
            self._halt(signal.SIGKILL)

    def _kill_after_grace(self) -> None:
        self._stop.wait(self.grace_seconds)
        self._halt(signal.SIGKILL)

    def _safe_seconds(self) -> float:
        """How long work may go on if nothing is renewed from now on."""
        return self._renewed_at + self._seconds * _SAFE_SHARE - time.monotonic()
