"""Run one task of a Python DAG: find it, render its arguments, call it under its timeout, and say how it went."""

from __future__ import annotations

import copy
import logging
import os
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from headrace.authoring.dag import DAG
from headrace.authoring.dag.asset_events import emitted
from headrace.authoring.dag.asset_uses import assets_in
from headrace.authoring.dag.assets import Asset
from headrace.authoring.dag.context import Context, enter_task, leave_task
from headrace.authoring.dag.deferral import deferral_of
from headrace.authoring.dag.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowRescheduleException,
    AirflowSensorTimeout,
    AirflowSkipException,
    AirflowTaskTerminated,
    AirflowTaskTimeout,
    DagRunTriggerException,
    DownstreamTasksSkipped,
    TaskDeferred,
    UnmappableXComLengthPushed,
    UnmappableXComTypePushed,
    XComForMappingNotPushed,
)
from headrace.authoring.dag.loading import DagFile
from headrace.authoring.dag.retry_policy import RetryAction, RetryDecision
from headrace.authoring.dag.state_stores import clears_on_success
from headrace.authoring.dag.task_instance import DagRun, TaskInstance, context_environment, task_context
from headrace.authoring.dag.time_limit import time_limit
from headrace.definition import Deferral, Node
from headrace.handoff import (
    RETURN_VALUE,
    AssetEvent,
    Channel,
    Console,
    Resume,
    RunContext,
    Source,
    TaskError,
    TaskRequest,
    TaskResult,
    failed,
    failure_of,
    may_reuse,
    say,
)
from headrace.operators.branch import skip_tasks
from headrace.operators.python import PythonOperator
from headrace.runner.alerts import mail_about_failure
from headrace.runner.callbacks import call_all
from headrace.runner.programs import named
from headrace.runner.rendering import Rendering
from headrace.runner.resuming import begin_from_trigger, resume, seconds_left
from headrace.runner.termination import TaskTerminated

log = logging.getLogger("airflow.task")


_DATES_IN_ENVIRONMENT = ("AIRFLOW_CTX_LOGICAL_DATE", "AIRFLOW_CTX_EXECUTION_DATE")


def run_python_task(file: DagFile, request: TaskRequest, channel: Channel) -> TaskResult:
    """One try of one task. User code that fails gives a failed result; only a request to stop is raised."""
    dag = file.dags.get(request.run.workflow)
    task = None if dag is None else dag.task_dict.get(request.node.key)
    if dag is None or task is None:
        what = f"task `{request.node.key}` of DAG `{request.run.workflow}`"
        return failed(request, "TaskNotFound", f"{what} is not in `{file.file}` as it is now")
    instance = instance_of(task, dag, request, channel)
    context = task_context(instance)
    enter_task(context, channel)
    try:
        return _Try(file, request, context).run()
    finally:
        leave_task()


def instance_of(task: Any, dag: Any, request: TaskRequest, channel: Channel) -> TaskInstance:
    """The task instance that user code sees."""
    return TaskInstance(
        task=task,
        dag=dag,
        dag_run=dag_run_of(request, dag),
        engine=_Foreknowing(channel, request) if request.elements else channel,
        map_index=request.map_index,
        try_number=request.try_number,
        max_tries=request.max_tries,
        first_started_at=request.first_started_at,
        waited_seconds=request.waited_seconds,
        started_at=request.started_at if request.resume is not None else None,
    )


def dag_run_of(request: TaskRequest, dag: Any) -> DagRun:
    """The run that user code sees."""
    run = request.run
    return DagRun(
        dag_id=run.workflow,
        run_id=run.run_key,
        run_type=run.run_type,
        conf=run.params,
        logical_time=run.logical_time,
        interval=(run.interval_start, run.interval_end),
        run_after=run.run_after,
        started_at=run.started_at,
        partition=(run.partition_key, run.partition_time),
        dag=dag,
    )


class _Foreknowing:
    """A channel that need not ask what the request says already: what this instance is mapped over."""

    def __init__(self, channel: Channel, request: TaskRequest) -> None:
        self._channel = channel
        self._request = request

    def ask(self, verb: str, **args: Any) -> Any:
        known = self._request.elements
        if verb == "get_element" and args["index"] == self._request.map_index and args["task"] in known:
            return msgspec.json.decode(known[args["task"]])
        return self._channel.ask(verb, **args)


class _Try:
    """The steps of one try, in order."""

    def __init__(self, file: DagFile, request: TaskRequest, context: Context) -> None:
        self._file = file
        self._request = request
        self._context = context
        self._instance: TaskInstance = context["ti"]
        self._task: Any = context["task"]
        self._rendering: Rendering | None = None

    def run(self) -> TaskResult:
        try:
            value = self._execute()
            if not self._is_ended_by_trigger:
                self._push(value)
        except TaskTerminated:
            self._kill()
            raise
        except TaskDeferred as deferred:
            return self._defer(deferred)
        except BaseException as error:
            return self._after_exception(error)
        self._instance.state = "success"
        self._call_back("success")
        instance = self._instance
        if clears_on_success():
            self._context["task_state_store"].clear()
        return self._result("success", followed=instance.followed, skipped=instance.skipped, events=self._events())

    def _events(self) -> tuple[AssetEvent, ...]:
        """What the task has updated."""
        if not self._task.settings.outlets:
            return ()
        outlets = list(assets_in(self._task.settings.outlets))
        if not outlets:
            return ()
        found = emitted(outlets, self._context["outlet_events"], self._find_asset)
        return tuple(msgspec.convert(event, AssetEvent) for event in found)

    def _find_asset(self, name: str) -> Asset:
        found = self._instance.engine.ask("get_asset", name=name)
        return Asset(found["name"], found["uri"], group=found["group"])

    @property
    def _is_ended_by_trigger(self) -> bool:
        """Whether the end is known already, with the results, and only the callbacks are left."""
        return self._request.resume is not None and self._request.resume.outcome != ""

    def _defer(self, deferred: TaskDeferred) -> TaskResult:
        try:
            deferral = deferral_of(self._task, deferred)
        except Exception as error:
            return self._after_exception(error)
        if deferral.trigger:
            log.info("waits for trigger %s", deferral.trigger)
        return self._result("deferred", deferral=deferral)

    def _call(self, rendering: Rendering) -> Any:
        task, given = self._task, self._request.resume
        if given is None and task.start_from_trigger:
            begin_from_trigger(task, rendering.renderer)
        limit = task.execution_timeout.total_seconds() if task.execution_timeout else None
        seconds = seconds_left(self._request, limit)
        # Most tasks have no limit, and need not pay for one.
        if not seconds or threading.current_thread() is not threading.main_thread():
            return self._granting_wishes(task, given)
        with time_limit(seconds, f"the task ran longer than its execution_timeout of {seconds:g} s"):
            return self._granting_wishes(task, given)

    def _execute(self) -> Any:
        untouched = self._become_instance()
        task, context = self._task, self._context
        context["params"]  # wrong ones fail the task before it does anything
        self._rendering = Rendering(context["dag"], task, self._file.folder, context)
        self._rendering.render_task(untouched)
        if may_reuse(self._request):
            for name in _DATES_IN_ENVIRONMENT:
                os.environ.pop(name, None)  # of an earlier try, whose run had a date
        for name, text in context_environment(context).items():
            os.environ[name] = text
        if task.pre_execute_hook is not None:
            task.pre_execute_hook(context)
        task.pre_execute(context)
        self._call_back("execute")
        try:
            value = self._call(self._rendering)
        except SystemExit as error:
            if error.code not in (None, 0):
                raise
            value = None
        if task.post_execute_hook is not None:
            task.post_execute_hook(context, value)
        task.post_execute(context, value)
        return value

    def _granting_wishes(self, task: Any, given: Resume | None) -> Any:
        """What a call of the operator returns; what it wishes for by an exception instead is done."""
        try:
            if given is None:
                return task.execute(self._context)
            return resume(task, self._context, given)
        except DownstreamTasksSkipped as wish:
            skip_tasks(self._instance, wish.tasks)
        except DagRunTriggerException as wish:
            # Named, not imported: only tasks that start other DAGs pay for what waits for them.
            named("headrace.operators.trigger_dag_run:start_and_wait")(self._task, self._context, wish)
        return None

    def _become_instance(self) -> list[int]:
        """Make the operator of this very try. Gives the ids of values that are not rendered."""
        computed: list[Any] = []
        if self._task.is_mapped:
            self._task, computed = self._task.instance(
                self._request.map_index, self._context, is_only_one=not may_reuse(self._request)
            )
        elif may_reuse(self._request):
            # Rendering changes the operator, and the same process runs it again.
            self._task = copy.copy(self._task)
        self._instance.task = self._context["task"] = self._task
        # The values are kept alive by the operator that was made of them, so their ids stay theirs.
        return list(map(id, computed))

    def _push(self, value: Any) -> None:
        task = self._task
        is_source = self._request.has_map_consumers and self._request.map_index < 0
        if is_source and (value is None or not task.do_xcom_push):
            raise XComForMappingNotPushed(f"task `{task.task_id}` returned nothing, but other tasks are mapped over it")
        if is_source and not isinstance(value, list | tuple | dict):
            raise UnmappableXComTypePushed(
                f"task `{task.task_id}` returned a {type(value).__name__}, but other tasks are mapped over it:"
                " expected a list or a dict"
            )
        if is_source and len(value) > self._request.max_map_length:
            raise UnmappableXComLengthPushed(
                f"task `{task.task_id}` returned {len(value)} elements, but other tasks are mapped over it and the"
                f" setting `limits.max_map_length` allows {self._request.max_map_length}"
            )
        if value is None or not task.do_xcom_push:
            return
        if task.multiple_outputs:
            self._push_each(value)
        self._instance.xcom_push(RETURN_VALUE, value)

    def _push_each(self, value: Any) -> None:
        task_id = self._task.task_id
        if not isinstance(value, dict):
            raise AirflowException(
                f"task `{task_id}` has multiple outputs: expected a dict, got: {type(value).__name__}"
            )
        for name, part in value.items():
            if not isinstance(name, str):
                raise AirflowException(f"task `{task_id}` has multiple outputs: expected names as keys, got: {name!r}")
            self._instance.xcom_push(name, part)

    def _after_exception(self, error: BaseException) -> TaskResult:
        if isinstance(error, AirflowSkipException):
            log.info("skipped: %s", error)
            self._instance.state = "skipped"
            self._call_back("skipped")
            return self._result("skipped")
        if isinstance(error, AirflowRescheduleException):
            wait = (error.reschedule_date - datetime.now(UTC)).total_seconds()
            return replace(self._result("again"), again_after_seconds=max(0.0, wait))
        if isinstance(error, AirflowTaskTimeout):
            self._kill()
        is_final = isinstance(error, AirflowFailException | AirflowSensorTimeout | AirflowTaskTerminated)
        failure = failure_of(self._request, error)
        self._context["exception"] = error
        decision = RetryDecision() if is_final else self._ask_policy(error)
        is_final = is_final or decision.action is RetryAction.FAIL
        has_tries_left = not is_final and 0 < self._request.try_number <= self._request.max_tries
        self._instance.state = "up_for_retry" if has_tries_left else "failed"
        self._call_back("retry" if has_tries_left else "failure")
        mail_about_failure(self._context, is_final=not has_tries_left)
        delay = None if decision.retry_delay is None else decision.retry_delay.total_seconds()
        return self._result("failed", error=failure.error, is_retryable=not is_final, retry_after_seconds=delay)

    def _ask_policy(self, error: BaseException) -> RetryDecision:
        """What the task's retry policy makes of a failure; a policy that fails itself decides nothing."""
        policy, request = self._task.settings.retry_policy, self._request
        if policy is None:
            return RetryDecision()
        try:
            decision: RetryDecision = policy.evaluate(error, request.try_number, request.max_tries, self._context)
        except Exception:
            log.exception("the retry policy of task `%s` failed", self._task.task_id)
            return RetryDecision()
        if decision.reason:
            log.info("the retry policy says `%s`: %s", decision.action, decision.reason)
        return decision

    def _result(
        self,
        outcome: Any,
        *,
        followed: tuple[str, ...] | None = None,
        skipped: tuple[str, ...] = (),
        events: tuple[AssetEvent, ...] = (),
        error: TaskError | None = None,
        is_retryable: bool = True,
        retry_after_seconds: float | None = None,
        deferral: Deferral | None = None,
    ) -> TaskResult:
        instance = self._instance
        return TaskResult(
            task_id=self._request.task_id,
            fence=self._request.fence,
            outcome=outcome,
            values={name: msgspec.Raw(data) for name, data in instance.pushed.items()},
            lengths=instance.lengths,
            rendered={} if self._rendering is None else self._rendering.shown,
            label="" if self._rendering is None else self._rendering.label(self._request.map_index),
            followed=followed,
            skipped=skipped,
            events=events,
            error=error,
            is_retryable=is_retryable,
            retry_after_seconds=retry_after_seconds,
            deferral=deferral,
        )

    def _call_back(self, event: str) -> None:
        """Call the task's callbacks for an event. What goes wrong in one is logged and changes nothing."""
        callbacks = getattr(self._task.settings, f"on_{event}_callback")
        if callbacks:
            call_all(callbacks, self._context, f"on_{event}_callback of task `{self._task.task_id}`")

    def _kill(self) -> None:
        try:
            if not self._task.is_mapped:
                self._task.on_kill()
        except Exception:
            log.exception("on_kill of task `%s` failed", self._task.task_id)


def prepare(file: DagFile) -> None:
    """Let the parent of task processes find out what is the same for all of them."""
    for dag in file.dags.values():
        for task in dag.tasks:
            task.prepare_processes()


def rehearsal(
    file: DagFile,
) -> tuple[Callable[[DagFile, TaskRequest, Channel], TaskResult], DagFile, *tuple[TaskRequest, ...]]:
    """Tries of a task that does nothing, and of some that do what many tasks of such a file do."""
    with DAG("rehearsal", schedule=None, auto_register=False) as dag:
        PythonOperator(task_id="nothing", python_callable=_nothing)
        common: dict[str, Any] = {"python_callable": _little, "show_return_value_in_logs": False}
        little = PythonOperator(task_id="little", op_kwargs={"number": 1}, **common)
        PythonOperator.partial(task_id="mapped", **common).expand(op_kwargs=little.output)
    made = DagFile(Path("/"), "", (), {"rehearsal": dag})
    prepare(made)
    requests = [_rehearsed("nothing"), _rehearsed("little")]
    if any(task.is_mapped for dag in file.dags.values() for task in dag.tasks):
        element = msgspec.Raw(b'{"element": {"number": 1}}')
        requests.append(_rehearsed("mapped", map_index=0, elements={"little": element}))
    return run_python_task, made, *requests


def _rehearsed(key: str, **fields: Any) -> TaskRequest:
    return TaskRequest(
        task_id=0,
        fence=0,
        key=key,
        node=Node(key=key, operator="python"),
        source=Source(root="/", file="", language="python"),
        run=RunContext(project="", workflow="rehearsal"),
        **fields,
    )


def _nothing() -> None:
    """What every try does is done around it."""


def _little(number: int) -> list[int]:
    """Lines and a result, so that what they need (`logging`, the configuration, the codec) is ready for any task."""
    _logs.info("rehearses")
    say(_says, "rehearses")
    return [number]


_logs, _says = logging.Logger("rehearsal"), logging.Logger("rehearsal")
"""Below no other, so that what is rehearsed is no news for handlers that a file may have installed."""
_logs.addHandler(Console())
