"""Calling user code about something that has happened: whatever goes wrong in it is told and changes nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

log = logging.getLogger("airflow.task")


def call_all(callbacks: Iterable[Callable[[Any], Any]], context: Any, name: str) -> list[Exception]:
    """Call them in their order with the context. One that fails is logged, and the next one is called."""
    errors: list[Exception] = []
    for callback in callbacks:
        try:
            callback(context)
        except Exception as error:
            log.exception("%s failed", name)
            errors.append(error)
    return errors
