"""A time without the database: one line when it begins and one when it is over, whoever in the process notices."""

from __future__ import annotations

import logging
import random
import threading
import time

from headrace.errors import SchemaError, StoreError

_log = logging.getLogger("headrace.store")

_LONGEST_WAIT_SECONDS = 3.0


class Outage:
    """Shared by all threads that use a database: every loop tells it what it met, and every commit that it is over."""

    def __init__(self, display_name: str) -> None:
        self._display_name = display_name
        self._lock = threading.Lock()
        self._began_at = 0.0
        self.is_on = False

    @property
    def seconds(self) -> float:
        """How long it has lasted; 0: there is none."""
        return time.monotonic() - self._began_at if self.is_on else 0.0

    def met(self, error: StoreError, first_wait_seconds: float = 0.2) -> float:
        """Note a failure. How long to wait before the next attempt: the longer it lasts, the longer, within a bound.

        A schema that is not the right one is raised again: no waiting makes it so.
        """
        if isinstance(error, SchemaError):
            raise error
        with self._lock:
            if not self.is_on:
                self._began_at, self.is_on = time.monotonic(), True
                _log.warning("waiting for the database: %s", error.message)
            lasts = time.monotonic() - self._began_at
        # Not all at the same moment: a server that is back should not be run over.
        return min(_LONGEST_WAIT_SECONDS, first_wait_seconds * (1.0 + lasts)) * random.uniform(0.7, 1.0)

    def end(self) -> None:
        """Something was committed."""
        with self._lock:
            if self.is_on:
                self.is_on = False
                seconds = time.monotonic() - self._began_at
                _log.warning("the database `%s` works again after %.1f s", self._display_name, seconds)
