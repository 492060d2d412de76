"""What crosses the line between an agent and a task process: requests, results, questions and answers, all JSON."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import msgspec

from headrace.definition import Data, Deferral, Node, Retry, keep_storable
from headrace.handoff.errands import Errand

RETURN_VALUE = "return_value"
"""The name under which a task's own result is stored."""

MARKED_TASK = "marked_task"
"""The name of a result that says which task of another workflow is cleared with this one:
{"workflow", "task", "logical_time", "depth"}, the depth being how many workflows in a row are cleared at most."""


class Source(Data, frozen=True, kw_only=True):
    """Where the task process finds the user's code."""

    root: str
    """Absolute path of the project's folder."""
    file: str
    """The workflow's file, relative to `root`."""
    language: str
    revision: str = ""
    """Digest of the revision; one warm parent process serves one revision of one file."""
    archive: str = ""
    """Digest of the pushed archive that holds the files; the agent unpacks it and makes that folder the root."""


class RunContext(Data, frozen=True, kw_only=True):
    """The run that a task belongs to, as user code may see it."""

    project: str
    workflow: str
    project_id: int = 0
    run_id: int = 0
    run_key: str = ""
    """`manual__2026-02-03T04:05:06+00:00`: the run's name, unique in its workflow."""
    run_type: str = "manual"
    attempt_id: int = 0
    attempt_number: int = 1
    attempt_name: str = ""
    created_at: datetime | None = None
    """When the attempt was made; unlike its start, that stays when it is cleared."""
    logical_time: datetime | None = None
    previous_time: datetime | None = None
    """For a run that the schedule or a backfill started: the logical time of the one before, if there was one."""
    interval_start: datetime | None = None
    interval_end: datetime | None = None
    run_after: datetime | None = None
    started_at: datetime | None = None
    timezone: str = "UTC"
    params: dict[str, Any] = {}
    """What the run was started with (`-p`, conf), before any merging."""
    partition_key: str | None = None
    """The partition that the run is for …"""
    partition_time: datetime | None = None
    """… and when the period begins that it stands for, if it stands for one."""


class TaskError(Data, frozen=True, kw_only=True):
    """Why a try failed."""

    type: str
    message: str
    traceback: str = ""
    """Only the user's own frames, if there are any."""

    def __post_init__(self) -> None:
        keep_storable(self, "type", "message", "traceback")


class Resume(Data, frozen=True, kw_only=True):
    """How a try goes on after it waited for a trigger."""

    method: str = ""
    """The name of what to call; empty: there is nothing to call."""
    kwargs: dict[str, Any] = {}
    event: Any = None
    """What the trigger had to tell."""
    error: TaskError | None = None
    """The trigger failed, or did not fire in time."""
    outcome: Literal["", "success", "failed", "skipped"] = ""
    """How the trigger ended the task, if it did."""
    ends_in_process: bool = False
    """As in `Deferral`."""
    default: Any = None
    """The event by which it goes on when nothing else came in time; None: it is told so by an error."""


class TaskRequest(Data, frozen=True, kw_only=True):
    """One try of one task, complete: the task process asks nobody else what to do."""

    task_id: int
    fence: int
    """Counts the claims of this task. A result with another fence than the task's present one changes nothing."""
    key: str
    map_index: int = -1
    try_number: int = 1
    max_tries: int = 0
    """The highest try number that may still be followed by another try."""
    node: Node
    """What to run. For an instance of a mapped task: the mapped node."""
    source: Source
    run: RunContext
    params: dict[str, Any] = {}
    """Merged parameters: defaults, run, exports and stores that are visible here; not the node's own config."""
    elements: dict[str, msgspec.Raw] = {}
    """For an instance of a mapped task: the answer to `get_element` about its own index, by task, where it is known."""
    poll_state: dict[str, Any] = {}
    """What the operator kept when it last asked to be called again."""
    resume: Resume | None = None
    """The try goes on after a deferral. None: it begins."""
    started_at: datetime | None = None
    """When this try began; deferrals do not change that."""
    first_started_at: datetime | None = None
    """When the first try of this series began; waiting limits count from here."""
    waited_seconds: float = 0.0
    """How long that was before this execution began, by the store's clock."""
    has_map_consumers: bool = False
    """Whether a mapped task takes its length from this task's result, which must then be a list or a dict."""
    errand: Errand | None = None
    """Not a try: something else is to be done on behalf of the run or the task."""
    max_map_length: int = 100_000
    """How many elements such a result may have."""
    log_path: str = ""
    kill_grace_seconds: float = 5.0
    """Between SIGTERM and SIGKILL."""


class AssetEvent(Data, frozen=True, kw_only=True):
    """A task has updated an asset."""

    asset: str
    uri: str = ""
    """Of an asset that no definition has named before."""
    group: str = "asset"
    extra: dict[str, Any] = {}
    """What the task has to say about it."""
    aliases: tuple[str, ...] = ()
    """The names through which it was found."""
    partition_key: str | None = None
    """The partition that was updated. None: that of the task's run, or all of it if the run has none."""


class TaskResult(Data, frozen=True, kw_only=True):
    """How one try ended. Exactly one reaches the engine for each request, whatever happens to the process."""

    task_id: int
    fence: int
    outcome: Literal["success", "failed", "skipped", "again", "deferred", "stopped"]
    """again: call me again after a while, in the same try · deferred: go on when a trigger has fired, in the same try ·
    stopped: ended because the agent was told to stop it."""
    has_begun: bool = True
    """stopped: False if no process has worked on it, so that there was no execution."""
    values: dict[str, msgspec.Raw] = {}
    """Named results (XCom), each already JSON."""
    lengths: dict[str, int] = {}
    """Number of elements of those values that are lists or dicts."""
    rendered: dict[str, msgspec.Raw] = {}
    """What templates in the task's arguments were rendered to, for people."""
    label: str = ""
    """What people see in place of the index of a mapped instance."""
    growth: tuple[Node, ...] = ()
    """Tasks to add under this one. Keys are full keys; a parent of None means this task."""
    export: dict[str, Any] = {}
    """Parameters for everything below this task."""
    store: dict[str, Any] = {}
    """Parameters for everything that comes after this task."""
    reset: tuple[str, ...] = ()
    """Dotted paths that are deleted before `store` is merged."""
    followed: tuple[str, ...] | None = None
    """Branching: of the direct downstream tasks only these go on, the others are skipped. None: no branching."""
    skipped: tuple[str, ...] = ()
    """Short circuit: these tasks (direct or not) are skipped."""
    events: tuple[AssetEvent, ...] = ()
    """success: the assets that the task has updated."""
    error: TaskError | None = None
    is_retryable: bool = True
    """False: the failure is final, whatever tries are left."""
    has_died: bool = False
    """failed: the process ended before it could say so; nobody was called back yet."""
    retry_after_seconds: float | None = None
    """failed: overrides the task's own retry delay."""
    retry: Retry | None = None
    """success of a group's `retry_question`: how often and when the group is tried again."""
    again_after_seconds: float = 0.0
    poll_state: dict[str, Any] = {}
    """again: handed back in the next request."""
    deferral: Deferral | None = None
    """deferred: what it waits for."""


class Ask(Data, frozen=True, kw_only=True, tag="ask"):
    """A question from user code to its supervisor. Verbs: see `broker.py` in the agent's room."""

    id: int
    verb: str
    args: dict[str, Any] = {}


class Answer(Data, frozen=True, kw_only=True, tag="answer"):
    id: int
    value: msgspec.Raw = msgspec.Raw(b"null")
    error: str | None = None
    """A sentence if the question could not be answered."""
    is_missing: bool = False
    """The thing asked for does not exist (as opposed to an error)."""


class Done(Data, frozen=True, kw_only=True, tag="done"):
    """The last message of a try."""

    result: TaskResult
    is_leaving: bool = False
    """The process serves no other try, although the request would allow it."""


class Start(Data, frozen=True, kw_only=True, tag="start"):
    """The first message of a try."""

    request: TaskRequest


ToTask = Start | Answer
FromTask = Ask | Done
