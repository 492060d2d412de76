"""The operators that wait for a run of another workflow: `require>`, and `call_dag>` for what it gives back.

The other workflow may be of either language and of any project; the run is an ordinary one, which everybody sees.
"""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any

from headrace.authoring.dig import as_boolean, as_integer, as_list, as_map, as_text, local_time
from headrace.handoff import ChannelError, MissingError
from headrace.operators.dig.contract import Job, OperatorError, Outcome, Params, PollAgain
from headrace.operators.dig.poll_intervals import growing_interval

_ENDED = ("success", "failed", "canceled")
_RERUN = {"none": (), "failed": ("failed", "canceled"), "all": _ENDED}
_RUN, _IS_OURS, _POLLS = "run_id", "is_ours", "polls"


def run_require(job: Job) -> Outcome:
    """Have another workflow run for a session time, unless it has, and wait for its end."""
    run = _ended_run(job)
    if run["state"] != "success" and not job.params.boolean("ignore_failure"):
        raise _failure(run)
    return Outcome()


def run_call_dag(job: Job) -> Outcome:
    """Have another workflow run with parameters of its own, wait for its end, and store what its tasks returned."""
    run = _ended_run(job)
    results = {str(task): _result(job, run, str(task)) for task in job.params.read("results", as_list, [])}
    if run["state"] != "success" and not job.params.boolean("ignore_failure"):
        raise _failure(run)
    told = {"last_run_id": run["run_key"], "last_state": run["state"], "results": results}
    return Outcome(store={"call_dag": told}, reset=("call_dag",))


def _ended_run(job: Job) -> dict[str, Any]:
    """The run that is waited for, once it has ended. Until then the operator is called again and again."""
    _ask_all(job.params)
    is_first = _RUN not in job.state
    run = _found_or_started(job) if is_first else _ask(job, "get_run", run_id=job.state[_RUN])
    is_ours = run["is_new"] if is_first else bool(job.state[_IS_OURS])
    if run["state"] in _ENDED:
        if is_ours or run["state"] not in _rerun_states(job.params):
            return run
        name = job.params.read("retry_attempt_name", as_text, None) or str(uuid.uuid4())
        run, is_ours = _ask(job, "retry_run", run_id=run["run_id"], attempt_name=name, is_resuming=False), True
    polls = int(job.state.get(_POLLS, 0))
    if is_first:
        print(f"waiting for run `{run['run_key']}` of workflow `{run['workflow']}`", flush=True)
    raise PollAgain(growing_interval(polls, 1, 10), {_RUN: run["run_id"], _IS_OURS: is_ours, _POLLS: polls + 1})


def _found_or_started(job: Job) -> dict[str, Any]:
    workflow, time = job.params.text("_command"), _session_time(job)
    project = _project(job)
    found = _ask(job, "get_runs", workflow=workflow, project=project, logical_times=[time])
    if found:
        return {**found[0], "is_new": False}
    params = job.params.read("params", as_map, {})
    run: dict[str, Any] = _ask(job, "start_run", workflow=workflow, project=project, params=params, logical_time=time)
    return run


def _project(job: Job) -> str | None:
    name = job.params.read("project_name", as_text, None)
    # The id of the task's own project is among the parameters of every task, and means nothing else than no id.
    number = job.params.read("project_id", as_integer, None)
    if number in (None, job.run.project_id):
        return name
    if name is not None:
        raise OperatorError("expected either `project_id` or `project_name`, got both")
    raise OperatorError(
        f"expected `project_id` to be that of this project, got: `{number}`",
        hint="name another project by `project_name`",
    )


def _session_time(job: Job) -> str:
    text = job.params.text("session_time")
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise OperatorError(
            f"expected `session_time` to be a time like `2026-02-03T04:05:06+00:00`, got: `{text}`"
        ) from None
    return local_time(time, job.run.timezone).isoformat() if time.tzinfo else _in_zone(time, job.run.timezone)


def _in_zone(time: datetime, timezone: str) -> str:
    zone = local_time(datetime.fromisoformat("2000-01-01T00:00:00+00:00"), timezone).tzinfo
    return time.replace(tzinfo=zone).isoformat()


def _rerun_states(params: Params) -> tuple[str, ...]:
    wanted = params.read("rerun_on", as_text, "none")
    if wanted not in _RERUN:
        raise OperatorError(f"expected `rerun_on` to be none, failed or all, got: `{wanted}`")
    return _RERUN[wanted]


def _result(job: Job, run: dict[str, Any], task: str) -> Any:
    try:
        return job.channel.ask("get_value", task=task, workflow=run["workflow"], run_key=run["run_key"])
    except MissingError:
        return None


def _ask(job: Job, verb: str, **args: Any) -> Any:
    try:
        return job.channel.ask(verb, **args)
    except (MissingError, ChannelError) as error:
        text = str(error) or "the run that was waited for is gone"
        raise OperatorError(text) from None


def _ask_all(params: Params) -> None:
    """Look at every option now, so that a mistake in one is told before anything is started."""
    params.read("ignore_failure", as_boolean, False)
    params.read("results", as_list, [])
    params.read("params", as_map, {})
    params.read("retry_attempt_name", as_text, None)
    _rerun_states(params)


def _failure(run: dict[str, Any]) -> OperatorError:
    return OperatorError(
        f"Dependent workflow failed. Session id: {run['run_id']}, attempt id: {run['attempt_id']}",
        hint=f"see run `{run['run_key']}` of workflow `{run['workflow']}`, which ended as {run['state']}",
        type_name="DependentWorkflowFailed",
    )
