"""The store that a command is about."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from headrace.cli.log_lines import show_log_lines
from headrace.clock import SystemClock
from headrace.errors import NoSchemaError
from headrace.settings import Settings, load_settings
from headrace.store import Store, list_runs
from headrace.store.database import IMPATIENT_SECONDS

_SQLITE = "sqlite:///"


class Opened(NamedTuple):
    settings: Settings
    store: Store
    clock: SystemClock
    is_private: bool
    """Whether it is the store of `headrace run`, on which no server works."""


@contextmanager
def opened(url: str | None, *, may_be_private: bool = False) -> Iterator[Opened]:
    """The store that a command is about, closed at the end; it is an error if there is none.

    With `may_be_private` it is the one of `headrace run` if nobody names another and there is no run elsewhere.
    """
    settings = load_settings()
    is_private = url is None and may_be_private and is_private_store_meant(settings)
    with _opened(settings, private_store(settings) if is_private else url, is_private=is_private) as here:
        yield here


@contextmanager
def opened_or_begun(url: str | None) -> Iterator[Opened]:
    """As `opened`, for commands with which somebody may begin: what is empty gets the schema."""
    with _opened(load_settings(), url, must_exist=False) as here:
        yield here


@contextmanager
def _opened(
    settings: Settings, url: str | None, *, must_exist: bool = True, is_private: bool = False
) -> Iterator[Opened]:
    show_log_lines()
    slots = settings.limits.default_pool_slots
    store = Store(
        url or settings.store, default_pool_slots=slots, must_exist=must_exist, lock_seconds=IMPATIENT_SECONDS
    )
    clock = SystemClock()
    clock.offset = store.clock_offset()
    try:
        yield Opened(settings, store, clock, is_private)
    finally:
        store.dispose()


def private_store(settings: Settings) -> str:
    """The store that only `headrace run` uses."""
    return f"{_SQLITE}{settings.home}/run.db"


def is_private_store_meant(settings: Settings) -> bool:
    """Whether the only runs in this home are those of `headrace run`."""
    usual = f"{_SQLITE}{settings.home}/headrace.db"
    if settings.store != usual or not _file(private_store(settings)).exists():
        return False
    try:
        store = Store(usual, must_exist=True)
    except NoSchemaError:
        return True
    try:
        with store.read() as tx:
            return not list_runs(tx, limit=1)
    finally:
        store.dispose()


def _file(url: str) -> Path:
    return Path(url.removeprefix(_SQLITE))
