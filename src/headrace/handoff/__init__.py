"""What crosses a process boundary: task requests, results, questions and their framing. JSON only.

Agents and task processes meet here and nowhere else. This room imports only `definition`.
"""

from headrace.handoff.channel import Channel, ChannelError, MissingError
from headrace.handoff.control import (
    MESSAGE_LIMIT_BYTES,
    Exited,
    Fork,
    Forked,
    ForkFailed,
    FromZygote,
    Load,
    Loaded,
    LoadFailed,
    ToZygote,
    may_reuse,
)
from headrace.handoff.errands import RUN_ENDED, TRY_DIED, Errand, errand_id, errand_key, is_errand
from headrace.handoff.failures import failed, failure_of, user_traceback
from headrace.handoff.lines import LineFormatter
from headrace.handoff.messages import (
    MARKED_TASK,
    RETURN_VALUE,
    Answer,
    Ask,
    Done,
    FromTask,
    Resume,
    RunContext,
    Source,
    Start,
    TaskError,
    TaskRequest,
    TaskResult,
    ToTask,
)
from headrace.handoff.revisions import KEPT_BYTES, content_digest
from headrace.handoff.triggers import (
    Asked,
    Fired,
    FromTriggers,
    Logged,
    RunTrigger,
    Stopped,
    StopTrigger,
    ToTriggers,
)
from headrace.handoff.wire import Reader, frame, send

__all__ = [
    "KEPT_BYTES",
    "MARKED_TASK",
    "MESSAGE_LIMIT_BYTES",
    "RETURN_VALUE",
    "RUN_ENDED",
    "TRY_DIED",
    "Answer",
    "Ask",
    "Asked",
    "Channel",
    "ChannelError",
    "Done",
    "Errand",
    "Exited",
    "Fired",
    "Fork",
    "ForkFailed",
    "Forked",
    "FromTask",
    "FromTriggers",
    "FromZygote",
    "LineFormatter",
    "Load",
    "LoadFailed",
    "Loaded",
    "Logged",
    "MissingError",
    "Reader",
    "Resume",
    "RunContext",
    "RunTrigger",
    "Source",
    "Start",
    "StopTrigger",
    "Stopped",
    "TaskError",
    "TaskRequest",
    "TaskResult",
    "ToTask",
    "ToTriggers",
    "ToZygote",
    "content_digest",
    "errand_id",
    "errand_key",
    "failed",
    "failure_of",
    "frame",
    "is_errand",
    "may_reuse",
    "send",
    "user_traceback",
]
