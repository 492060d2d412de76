"""The triggers that come with the engine: points in time, files, and runs of other workflows."""

from headrace.operators.triggers.external_task import DagStateTrigger, ExternalTaskTrigger, WorkflowTrigger
from headrace.operators.triggers.file import DirectoryFileDeleteTrigger, FileDeleteTrigger, FileTrigger
from headrace.operators.triggers.temporal import DateTimeTrigger, TimeDeltaTrigger

__all__ = [
    "DagStateTrigger",
    "DateTimeTrigger",
    "DirectoryFileDeleteTrigger",
    "ExternalTaskTrigger",
    "FileDeleteTrigger",
    "FileTrigger",
    "TimeDeltaTrigger",
    "WorkflowTrigger",
]
