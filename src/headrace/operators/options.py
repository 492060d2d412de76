"""Defaults of operators that an installation may change through the environment."""

from __future__ import annotations

import os

_YES = ("1", "t", "true", "y", "yes", "on")
_WEEK_SECONDS = 604_800.0


def default_deferrable() -> bool:
    """Whether operators that can wait in a trigger do so unless they are told."""
    return os.environ.get("AIRFLOW__OPERATORS__DEFAULT_DEFERRABLE", "").strip().lower() in _YES


def default_sensor_timeout() -> float:
    """How many seconds a sensor waits unless it is told: a week."""
    return float(os.environ.get("AIRFLOW__SENSORS__DEFAULT_TIMEOUT") or _WEEK_SECONDS)
