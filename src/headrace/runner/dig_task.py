"""Runs one task of a `.dig` workflow: evaluates its parameters, calls its operator, reports what came of it."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from headrace.authoring.dig import (
    FAILURE_ALERT,
    DigFile,
    compile_fragment,
    is_template,
    operators_of_project,
    parse_retry,
    shown,
)
from headrace.definition import Node, Workflow
from headrace.errors import HeadraceError, did_you_mean
from headrace.handoff import (
    Channel,
    RunContext,
    Source,
    TaskError,
    TaskRequest,
    TaskResult,
    say,
    stable_uuid,
    user_traceback,
)
from headrace.operators.dig import (
    REHEARSAL,
    Job,
    OperatorError,
    Outcome,
    Params,
    PollAgain,
    SecretScope,
    builtin_variables,
    find_operator,
    working_folder,
)
from headrace.runner.dig_preparation import Survey, find_modules, import_libraries, import_operators
from headrace.template.javascript import Evaluator, ExpressionError, merge

log = logging.getLogger(__name__)
_evaluator = Evaluator()
_SHOW_PARAMS = "HEADRACE_TASK_SHOW_PARAMS"
"""Set by `headrace run --show-params`."""
_RETRY_COUNT = "retry_count"
_DIRECTIVES = frozenset(("_command", "_check", "_retry", "_secrets"))
"""Keys of a task that no operator needs to ask for."""
_REHEARSED_DATE = "${moment(session_time).add(1, 'day').format('YYYY-MM-DD')}"
"""What files that mention moment do with it, by and large."""


def run_dig_task(file: DigFile, request: TaskRequest, channel: Channel) -> TaskResult:
    """Run one try. Failures of the task come back as results; only the end of the process itself is raised."""
    values: dict[str, Any] = {}
    obeys_retry = False
    try:
        inherited = merge(_inherited(request), builtin_variables(file.workflows[0], request))
        values = _evaluate(request, inherited)
        if os.environ.get(_SHOW_PARAMS):
            log.info("parameters: %s", json.dumps(values, ensure_ascii=False, default=str))
        registered = find_operator(request.node.operator, file.root)
        obeys_retry = registered.obeys_retry
        job = _job(file, request, values, channel)
        outcome = registered.run(job) or Outcome()
        _report_unused(request.node, job.params)
        with operators_of_project(file.root):
            return _success(request, outcome)
    except PollAgain as poll:
        return _again(request, poll.after_seconds, poll.state)
    except Exception as error:
        return _failure(request, error, values, is_retryable=obeys_retry and getattr(error, "is_retryable", True))


def _inherited(request: TaskRequest) -> dict[str, Any]:
    # The alert must go out even if it is an export of the workflow that cannot be evaluated.
    if request.key.endswith(FAILURE_ALERT):
        return {}
    error = request.params.get("error")
    if not _handles_failure(request) or not isinstance(error, dict):
        return request.params
    return {**request.params, "error": {key: _to_be_quoted(value) for key, value in error.items()}}


def _to_be_quoted(words: Any) -> Any:
    """Handlers put `${error.message}` into shell scripts and JSON: a shell would run what stands in backquotes, and
    a hint is a second line, which a text in JSON cannot have.
    """
    return words.partition("\nhint: ")[0].replace("`", "") if isinstance(words, str) else words


def _handles_failure(request: TaskRequest) -> bool:
    return "^error" in request.key


def _evaluate(request: TaskRequest, inherited: dict[str, Any]) -> dict[str, Any]:
    operator = request.node.operator
    # In a failure handler `error` holds the engine's words, which may quote the very `${…}` that failed.
    verbatim = frozenset(("error",)) if _handles_failure(request) else frozenset()
    try:
        return _evaluator.evaluate(
            inherited, request.node.config, verbatim, request.run.timezone, {"_command": f"{operator}>"}
        )
    except ExpressionError as error:
        if operator == "sh" and error.hint is None and "of `sh>`" in error.message:
            error.hint = "`${…}` is filled in before the shell sees it; its own variables are written `$name`"
        raise


def _job(file: DigFile, request: TaskRequest, values: dict[str, Any], channel: Channel) -> Job:
    node = request.node
    names = values.get("_secrets")
    if not request.poll_state:
        say(log, "%s>: %s", node.operator, " ".join(shown(values.get("_command")).split()))
    return Job(
        key=request.key,
        operator=node.operator,
        params=Params(values, node.operator),
        root=file.root,
        folder=working_folder(file.root, values.get("_workdir")),
        state=dict(request.poll_state),
        place=node.place,
        channel=SecretScope(channel, names) if isinstance(names, dict) else channel,
        run=request.run,
        render=lambda text, name="text": _evaluator.render(text, values, request.run.timezone, name),
        revision=request.source.revision,
        identity=_identity(request),
        own_keys=tuple(node.config),
        try_number=request.try_number,
        waited_seconds=request.waited_seconds,
    )


def _identity(request: TaskRequest) -> str:
    run = request.run
    return stable_uuid(run.project, run.workflow, run.run_key, request.key, request.task_id, request.first_started_at)


def _success(request: TaskRequest, outcome: Outcome) -> TaskResult:
    node = request.node
    growth = compile_fragment(outcome.subtasks or {}, f"{request.key}^sub", node.place)
    upstream = (growth[0].key,) if growth else ()
    check = compile_fragment(
        node.config.get("_check") or {}, f"{request.key}^check", node.place, upstream=upstream, directive="_check"
    )
    return TaskResult(
        task_id=request.task_id,
        fence=request.fence,
        outcome="success",
        growth=(*growth, *check),
        export=outcome.export,
        store=outcome.store,
        reset=outcome.reset,
        events=outcome.events,
        retry=outcome.retry,
    )


def _failure(request: TaskRequest, error: Exception, values: dict[str, Any], *, is_retryable: bool) -> TaskResult:
    if is_retryable and is_template(request.node.config.get("_retry")):
        again = _evaluated_retry(request, error, values.get("_retry"))
        if again is not None:
            return again
    return TaskResult(
        task_id=request.task_id,
        fence=request.fence,
        outcome="failed",
        error=_task_error(error),
        is_retryable=is_retryable,
    )


def _evaluated_retry(request: TaskRequest, error: Exception, value: Any) -> TaskResult | None:
    """A `_retry` that only a try can evaluate is unknown to the engine: the task asks to be called again by itself."""
    try:
        retry = parse_retry(value)
    except ValueError as problem:
        log.error("expected `_retry` of task `%s` %s", request.key, problem)
        return None
    count = int(request.poll_state.get(_RETRY_COUNT, 0))
    if count >= retry.limit:
        return None
    delay = retry.delay_seconds * retry.backoff**count
    delay = delay if retry.max_delay_seconds is None else min(delay, retry.max_delay_seconds)
    log.error("retry %d of %d in %g s: %s", count + 1, retry.limit, delay, error)
    return _again(request, delay, {_RETRY_COUNT: count + 1})


def _again(request: TaskRequest, after_seconds: float, state: dict[str, Any]) -> TaskResult:
    return TaskResult(
        task_id=request.task_id,
        fence=request.fence,
        outcome="again",
        again_after_seconds=after_seconds,
        poll_state=state,
    )


def _task_error(error: Exception) -> TaskError:
    if isinstance(error, OperatorError):
        return TaskError(type=error.type_name, message=str(error), traceback=error.detail)
    if isinstance(error, HeadraceError):
        return TaskError(type=type(error).__name__, message=str(error))
    message = str(error) or type(error).__name__
    return TaskError(type=type(error).__name__, message=message, traceback=user_traceback(error))


def _report_unused(node: Node, params: Params) -> None:
    for key in node.config:
        if key not in params.asked and key not in _DIRECTIVES:
            hint = did_you_mean(key, params.asked - set(node.config))
            log.error("parameter `%s` of task `%s` is not used%s", key, node.key, f", {hint}" if hint else "")


def prepare(file: DigFile) -> None:
    """Do in a warm parent what its children would all have to do."""
    survey = Survey(file)
    if "${" in survey.text:
        _evaluator.warm_up(survey.text)
    import_operators(survey)
    import_libraries(survey)
    find_modules(survey)


def rehearsal(file: DigFile) -> tuple[Callable[[DigFile, TaskRequest, Channel], TaskResult], DigFile, TaskRequest]:
    """A try of a task that does nothing, in the way that the file's tasks do something; with everything it needs."""
    survey = Survey(file)
    values: dict[str, Any] = {"_command": sorted(survey.operators & {"py", "sh"})}
    if "${" in survey.text:
        values["expression"] = _REHEARSED_DATE if "moment" in survey.text else "${1 + 1}"
    node = Node(key="+rehearsal", operator=REHEARSAL, config=values)
    workflow = Workflow(name="rehearsal", language="dig", nodes=(Node(key="+rehearsal", kind="group"),))
    request = TaskRequest(
        task_id=0,
        fence=0,
        key="+rehearsal",
        node=node,
        source=Source(root="/", file="", language="dig"),
        run=RunContext(
            project="", workflow="rehearsal", run_after=datetime.now(UTC), timezone=file.workflows[0].timezone
        ),
    )
    return run_dig_task, DigFile(Path("/"), "rehearsal.dig", (workflow,)), request
