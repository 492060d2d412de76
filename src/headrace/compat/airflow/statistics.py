"""Airflow's counters and timers, which providers touch and which lead nowhere here."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any


class Timer:
    """Measures the time between `start` and `stop`, or of a `with` block, in milliseconds."""

    duration: float | None = None

    def start(self) -> Timer:
        self._began = time.perf_counter()
        return self

    def stop(self, send: bool = True) -> None:
        self.duration = 1000.0 * (time.perf_counter() - self._began)

    def __enter__(self) -> Timer:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()


class Stats:
    """Takes every measurement and sends none."""

    @classmethod
    def initialize(cls, *args: Any, **kwargs: Any) -> None:
        return None

    @classmethod
    def incr(cls, stat: str, *args: Any, **kwargs: Any) -> None:
        return None

    @classmethod
    def decr(cls, stat: str, *args: Any, **kwargs: Any) -> None:
        return None

    @classmethod
    def gauge(cls, stat: str, *args: Any, **kwargs: Any) -> None:
        return None

    @classmethod
    def timing(cls, stat: str, *args: Any, **kwargs: Any) -> None:
        return None

    @classmethod
    def timer(cls, *args: Any, **kwargs: Any) -> Timer:
        return Timer()


initialize, incr, decr, gauge, timing, timer = (
    *(Stats.initialize, Stats.incr, Stats.decr, Stats.gauge, Stats.timing, Stats.timer),
)
