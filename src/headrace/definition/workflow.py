"""The compiled workflow: what both front ends produce and the only thing that the engine reads.

A workflow is a flat tuple of nodes in file order. `parent` makes it a tree, `upstream` makes it a graph. What differs
between families of workflows is data on the nodes (which nodes decide the result, how retries wait, what a failure
adds), so that nothing behind this room asks who wrote the file.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

ROOT = ""
"""The key of a Python DAG's root. A `.dig` workflow's root has a name of its own (`+main`)."""

Kind = Literal["task", "group", "mapped"]
"""task: runs an operator · group: opens its children · mapped: is multiplied over upstream results when it opens."""

Ending = Literal["success", "failed", "retry"]
"""Endings about which user code may want to be called. retry: a try failed and another one is left."""

Isolation = Literal["default", "inline", "process", "programs", "reuse"]
"""default: as the installation says (a fresh process unless told otherwise) · inline: no user code, no process ·
process: a fresh process per try · programs: user code runs in programs that a try starts, and the process that started
them may serve other tries once all of them are gone · reuse: a process may serve many tries."""

TRIGGER_RULES = (
    "all_success",
    "all_failed",
    "all_done",
    "all_done_min_one_success",
    "all_skipped",
    "one_success",
    "one_failed",
    "one_done",
    "none_failed",
    "none_failed_min_one_success",
    "none_skipped",
    "always",
    "all_done_setup_success",
)

NOOP = "noop"
"""The operator that does nothing: a task with it succeeds as soon as it opens."""

NOTIFY = "notify"
"""The operator that tells people something, in the way that the settings say; only it is told how."""

TASKS_LATE = "tasks_late"
RUN_LATE = "run_late"
"""The errands by which user code is told that tasks of a workflow, or a run of it, were not done in time."""


class Data(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Frozen data with a JSON form that leaves out what is at its default."""


class Retry(Data, frozen=True, kw_only=True):
    """How often and when a failed task or group is tried again. A limit of 2 retries allows 3 tries."""

    limit: int = 0
    delay_seconds: float = 0.0
    backoff: float = 1.0
    """Each wait is this many times longer than the one before; 1 keeps it constant."""
    jitter: bool = False
    """Spread each wait over [m, 2m) by a hash of the task and try: always the same for the same try."""
    max_delay_seconds: float | None = None


class Past(Data, frozen=True, kw_only=True):
    """What a node waits for in the run before its own, by logical time: that it succeeded or was skipped there."""

    with_downstream: bool = False
    """Also that everything which waited for it directly did."""
    ignores_first: bool = True
    """A run before that lacks the node does not hold it up if no earlier run has it either."""
    skips_manual: bool = False
    """Runs that somebody started by hand do not count as the run before."""
    since: str | None = None
    """ISO 8601 instant: a run before that is about an earlier time does not count."""
    before_skipping: bool = False
    """It waits even where its trigger rule says that it is to be skipped."""


class Length(Data, frozen=True, kw_only=True):
    """How many instances a mapped node gets, as an expression over lengths that are known when it opens."""

    op: Literal["literal", "result", "product", "zip_shortest", "zip_longest", "concat"]
    length: int = 0
    """literal: the number itself."""
    task: str = ""
    """result: the key of the task whose result is mapped over."""
    parts: tuple[Length, ...] = ()
    """product, zip, concat: the operands."""


class Place(Data, frozen=True, kw_only=True):
    """Where in the user's files something was written."""

    file: str = ""
    line: int | None = None

    def __str__(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"


class Person(Data, frozen=True, kw_only=True):
    """Somebody who answers questions."""

    id: str
    name: str = ""


class Question(Data, frozen=True, kw_only=True):
    """What a task asks a person before it goes on."""

    subject: str
    body: str = ""
    options: tuple[str, ...]
    """What there is to choose from."""
    is_multiple: bool = False
    """Whether several of them may be chosen."""
    defaults: tuple[str, ...] | None = None
    """What counts as chosen when nobody has answered in time. None: the task is told that nobody has."""
    params: dict[str, Any] = {}
    """What can be filled in, by name, with the values that stand there."""
    param_schemas: dict[str, dict[str, Any]] = {}
    """As in `Workflow`: what has a schema and no value must be filled in."""
    respondents: tuple[Person, ...] = ()
    """Who may answer; empty: everybody."""


class Deferral(Data, frozen=True, kw_only=True):
    """What a task waits for without a process, and how it goes on when that has happened."""

    trigger: str = ""
    """Path of the trigger's class; empty: it waits for the answer to a question."""
    question: Question | None = None
    arguments: dict[str, Any] = {}
    """What the class is called with, in JSON form."""
    method: str = ""
    """What the task goes on with; empty: the trigger ends the task."""
    kwargs: dict[str, Any] = {}
    """What the method gets besides the event, in JSON form."""
    timeout_seconds: float | None = None
    ends_in_process: bool = False
    """Whether a process of the task must see its end even if the trigger says how it ends: it has callbacks."""


class Node(Data, frozen=True, kw_only=True):
    """One task, group or mapped task of a workflow."""

    key: str
    """Full name, unique in the workflow: `extract`, `group.extract`, `+main+extract`. The root's is the workflow's."""
    parent: str | None = None
    """Key of the enclosing node; None only for the root. In a fragment: None means directly under the growing node."""
    kind: Kind = "task"
    upstream: tuple[str, ...] = ()
    """Keys of the nodes that this one waits for. They may sit under other parents."""
    setups: tuple[str, ...] = ()
    """Those of `upstream` that are setup tasks, for `all_done_setup_success`."""
    trigger_rule: str = "all_success"
    needs: tuple[str, ...] = ()
    """Keys of nodes further up that must have succeeded, whatever the rule says about `upstream`."""
    is_needed: bool = False
    """Whether it is among the `needs` of another node."""
    operator: str = NOOP
    """What runs: the name of an operator that the workflow's language knows."""
    config: dict[str, Any] = {}
    """What the operator gets, before rendering. For a group: unused."""
    export: dict[str, Any] = {}
    """Parameters that this node adds for itself and everything below it."""
    retry: Retry = Retry()
    retry_question: Node | None = None
    """group: run when a generation has failed; its result says how often the group is tried, which only a run knows."""
    on_failure: tuple[Node, ...] = ()
    """Grown under the node when it has failed for good; it ends as failed after they ended. Keys are full keys."""
    sees_siblings: bool = False
    """Sees what its siblings stored, without waiting for them and over its own export: a failure's handler, which looks
    back."""
    expand: Length | None = None
    """mapped: how many instances. None for other kinds."""
    lockstep: str = ""
    """mapped: nodes with the same word are multiplied alike and as soon as their length is known, and an instance waits
    only for those instances of the others that have its own index."""
    decides: bool = True
    """Whether its failure fails its parent. False for inner tasks of a Python DAG, whose result its leaves decide."""
    deferral: Deferral | None = None
    """What each try begins to wait for before any code of the task runs. None: a try begins with a process."""
    isolation: Isolation = "default"
    not_before: str | None = None
    not_after: str | None = None
    """ISO 8601 instants: it takes part in runs that are about a time between them, both included."""
    past: Past | None = None
    """None: whatever became of it in earlier runs does not matter."""
    cleans_up: bool = False
    """A teardown or an alert: it runs although the rest of the run is stopped."""
    timeout_seconds: float | None = None
    """How long one try may run."""
    priority: int = 1
    pool: str = "default_pool"
    pool_slots: int = 1
    queue: str = "default"
    executor: str = ""
    """Which executor is to run it; empty: the agent's own."""
    executor_options: dict[str, Any] = {}
    """What the executor is told about this task; each executor reads what is meant for it."""
    max_active_per_workflow: int | None = None
    """How many of this task may be active at once over all runs."""
    max_active_per_run: int | None = None
    """How many instances of this mapped task may be active at once in a run."""
    calls_back: tuple[Ending, ...] = ()
    """On which of its endings user code is to be called. A process that runs the node calls it by itself; where none
    could (the root of a run, a try whose process died) an errand does."""
    place: Place = Place()
    doc: str = ""
    display_name: str = ""
    """What people see in place of the key."""
    group: str = ""
    """The full id of the group that it is shown in, where groups are no nodes."""
    edge_labels: dict[str, str] = {}
    """Labels of edges, by the upstream node's key."""
    map_index_template: str = ""
    """mapped: the template of the name that people see in place of an instance's index."""


Moment = Literal["logical_time", "interval_end", "run_after", "queued", "average_end", "instant"]
"""Moments of a run that deadlines count from. run_after: when it was due, or was asked to run again · queued: when it
was created, tried again or cleared · average_end: how long runs of its workflow take, after it was queued."""


class Deadline(Data, frozen=True, kw_only=True):
    """When a task or a whole run is to be done, and what happens when that time passes and it is not.

    A miss is recorded, and never stops anything by itself.
    """

    name: str
    """Unique in the workflow."""
    task: str = ""
    """Key of the task that is to be done; empty: the run."""
    counts_from: Moment
    seconds: float = 0.0
    """How long after that moment; negative: before it."""
    wall_time: str | None = None
    """`HH:MM:SS`: instead, when clocks in the workflow's time zone show this for the first time from that moment on."""
    instant: str | None = None
    """instant: the ISO 8601 instant itself."""
    newest_runs: int = 0
    """average_end: how many of the newest successful runs count …"""
    fewest_runs: int = 1
    """… and how many there must be; with fewer there is no deadline."""
    run_types: tuple[str, ...] = ()
    """Only runs of these types have it; empty: all …"""
    not_run_types: tuple[str, ...] = ()
    """… but these."""
    is_met_by_failure: bool = False
    """Whether it is enough to have ended, however; else only success and skipping count."""
    errand: str = ""
    """The kind of errand that tells user code of a miss. Tasks of a workflow that are late at once share one."""
    grows: tuple[Node, ...] = ()
    """What a miss adds to the run, directly below its root."""


CRON_PRESETS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@quarterly": "0 0 1 */3 *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
"""Names for common cron expressions."""


class Schedule(Data, frozen=True, kw_only=True):
    """When runs start by themselves. The timetable room turns it into logical times.

    `type` and `spec` are the timetable's own: `cron` {"expression": "0 3 * * *", ...}, `interval` {"seconds": 3600}, …
    """

    type: str
    spec: dict[str, Any] = {}
    catch_up: Literal["all", "latest"] = "latest"
    """After a pause or an outage: start every missed run, or only the newest one."""
    overlap: Literal["allow", "skip", "wait"] = "allow"
    """While an earlier run is still going: start anyway (within `max_active_runs`), leave this time out, or wait."""
    start_at: str | None = None
    end_at: str | None = None
    """ISO 8601 instants between which logical times must lie, both included."""
    skip_delayed_seconds: float | None = None
    """A run that is later than this when its turn comes is left out."""


class Watcher(Data, frozen=True, kw_only=True):
    """A trigger that runs for as long as something is scheduled on an asset; its events update the asset."""

    name: str
    trigger: str
    """Path of the trigger's class."""
    arguments: dict[str, Any] = {}
    """What the class is called with, in JSON form."""


class AssetUse(Data, frozen=True, kw_only=True):
    """An asset, or an alias of assets, that a workflow is scheduled on, updates or reads."""

    name: str
    kind: Literal["asset", "alias"] = "asset"
    role: Literal["schedule", "outlet", "inlet"]
    task: str = ""
    """The key of the node that updates or reads it."""
    by_partition: bool = False
    """schedule: only events about a partition of the asset count; else only those about all of it."""
    uri: str = ""
    group: str = "asset"
    extra: dict[str, Any] = {}
    watchers: tuple[Watcher, ...] = ()


class Workflow(Data, frozen=True, kw_only=True):
    """One workflow of a revision, complete: the engine needs nothing else to run it."""

    name: str
    language: str
    """Which loader turns `place.file` into runnable code in the task process: `python` or `dig`."""
    nodes: tuple[Node, ...]
    """In file order; the first is the root."""
    timezone: str = "UTC"
    params: dict[str, Any] = {}
    """Default parameters; a run's own override them."""
    param_schemas: dict[str, dict[str, Any]] = {}
    """JSON schemas of parameters; one that has a schema and no default must be given when a run is started."""
    schedule: Schedule | None = None
    assets: tuple[AssetUse, ...] = ()
    has_partitions: bool = False
    """Whether a run may be for one partition of what the workflow works on."""
    max_active_runs: int | None = None
    max_active_tasks: int | None = None
    """How many tasks may be active at once …"""
    max_active_tasks_scope: Literal["run", "workflow"] = "run"
    """… in one run, or over all runs of the workflow."""
    timeout_seconds: float | None = None
    """How long a run may take, counted from its start."""
    on_timeout: Literal["skip", "cancel"] = "skip"
    """What unfinished tasks become when the run times out; the run fails either way."""
    deadlines: tuple[Deadline, ...] = ()
    fails_fast: bool = False
    """The first task that fails for good stops the rest of its run: what runs fails, everything else is skipped."""
    max_consecutive_failures: int = 0
    """The workflow is paused when so many of its runs in a row have failed; 0: never."""
    is_paused_at_creation: bool = False
    unique_logical_time: bool = True
    """Whether a second run for the same logical time is refused."""
    tags: tuple[str, ...] = ()
    description: str = ""
    display_name: str = ""
    """What people see in place of the name."""
    doc: str = ""
    owner: str = ""
    owner_links: dict[str, str] = {}
    warnings: tuple[str, ...] = ()
    """What the file asks for and the engine does not do."""
    place: Place = Place()

    @property
    def root(self) -> Node:
        return self.nodes[0]
