"""What crosses a process boundary: task requests, results, questions and their framing. JSON only.

Agents and task processes meet here and nowhere else. This room imports only `definition`.
"""

from headrace.handoff.channel import Channel, ChannelError, MissingError
from headrace.handoff.messages import (
    RETURN_VALUE,
    Answer,
    Ask,
    Done,
    FromTask,
    RunContext,
    Source,
    Start,
    TaskError,
    TaskRequest,
    TaskResult,
    ToTask,
)
from headrace.handoff.wire import Reader, frame, send

__all__ = [
    "RETURN_VALUE",
    "Answer",
    "Ask",
    "Channel",
    "ChannelError",
    "Done",
    "FromTask",
    "MissingError",
    "Reader",
    "RunContext",
    "Source",
    "Start",
    "TaskError",
    "TaskRequest",
    "TaskResult",
    "ToTask",
    "frame",
    "send",
]
