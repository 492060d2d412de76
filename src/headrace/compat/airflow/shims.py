"""Small things that old files import and that need no more than this."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

AIRFLOW_VERSION = "3.3.2"
"""The version whose behaviour is followed, for files that compare `airflow.__version__`."""

F = TypeVar("F", bound=Callable[..., object])


def apply_defaults(function: F) -> F:
    """Operators get their default arguments without it."""
    return function
