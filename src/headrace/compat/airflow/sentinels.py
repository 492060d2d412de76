"""Marks in place of values."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from headrace.authoring.dag.xcom_arg import Unset


class SetDuringExecution(Unset):
    """In place of an argument that only a running task knows."""

    @staticmethod
    def serialize() -> str:
        return "DYNAMIC (set during execution)"


SET_DURING_EXECUTION = SetDuringExecution()


def is_arg_set(value: Any) -> bool:
    """Whether an argument was given."""
    return not isinstance(value, Unset)


class DagRunType(StrEnum):
    """What a run was started by."""

    BACKFILL_JOB = "backfill"
    SCHEDULED = "scheduled"
    MANUAL = "manual"
    OPERATOR_TRIGGERED = "operator_triggered"
    ASSET_TRIGGERED = "asset_triggered"
    ASSET_MATERIALIZATION = "asset_materialization"
