"""The store that a command is about."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from headrace.clock import SystemClock
from headrace.settings import Settings, load_settings
from headrace.store import Store


class Opened(NamedTuple):
    settings: Settings
    store: Store
    clock: SystemClock


@contextmanager
def opened(url: str | None) -> Iterator[Opened]:
    """The store that a command is about, closed at the end."""
    settings = load_settings()
    store = Store(url or settings.store, default_pool_slots=settings.limits.default_pool_slots)
    clock = SystemClock()
    clock.offset = store.clock_offset()
    try:
        yield Opened(settings, store, clock)
    finally:
        store.dispose()
