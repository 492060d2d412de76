"""How user code asks its supervisor for what lives in the database: results, variables, connections."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from headrace.handoff.messages import Answer


class MissingError(LookupError):
    """The supervisor says that what was asked for does not exist."""


class ChannelError(RuntimeError):
    """The supervisor could not answer, or is gone."""


class Channel(Protocol):
    def ask(self, verb: str, **args: Any) -> Any:
        """The decoded JSON answer. Raises MissingError or ChannelError.

        Verbs and their arguments:
          get_value(task, name="return_value", map_index=None, run_key=None, workflow=None)
              one named result; a mapped task without `map_index` gives the list of its instances' values in order
              (those that have none left out). MissingError if there is none.
          get_values(tasks, name="return_value")   {task: value} for those that have one
          get_results(tasks, name="return_value", run_key=None, workflow=None, include_prior=False)
              every result of these tasks: [{"task", "map_index", "is_mapped", "name", "value"}], without the last two
              for what has none. `name=None`: whatever they are called. `include_prior`: each task's newest ones in
              runs up to the time of this one.
          delete_values(name=None)                 forget a named result of the asking task, or all of them
          get_length(task)                         how many elements the task's result has to map over
          get_element(task, index)                 {"element": …} of a list, or of a mapped task's instances;
                                                   {"pair": [key, value]} of a dict; {"whole": …} of anything else
          set_value(name, value, length=None)      store a named result of the asking task at once; the length is
                                                   that of the value itself unless another is given
          get_variable(name) · set_variable(name, value, description=None) · delete_variable(name)
          list_variables(prefix="")                the names of variables
          get_connection(name)                     {"conn_id", "conn_type", "host", "login", "password", "port",
                                                    "schema", "extra"}
          get_secret(name)                         a secret of the project
          get_notification()                       how people are told of failures, as the settings say; MissingError
                                                   if they are not told
          get_memo(name, asset=None)               what the asking task kept in this run, in whichever try, or what is
                                                   kept for an asset, by its name or uri; MissingError if there is
                                                   nothing
          set_memo(name, value, asset=None, seconds=None)     keep something, for so many seconds at most
          delete_memos(name=None, asset=None)      forget what is kept under a name, or everything
          get_asset(name)                          {"name", "uri", "group", "extra"} of an asset
          get_asset_events(asset=None, alias=None, after=None, before=None, ascending=True, limit=None)
              events of an asset, or those that came through an alias, oldest first: [{"id", "asset", "uri", "group",
              "extra", "timestamp", "aliases", "workflow", "run_key", "task", "map_index", "partition_key"}]
          get_triggering_events()                  the events that started the asking task's run, in the same form
          get_previous_run(is_success=False, states=[])     the run before this one by logical time, or the last before
              it that succeeded, or is in one of the states: {"run_key", "run_type", "state", "params", "logical_time",
              "run_after", "interval_start", "interval_end", "started_at", "ended_at", "partition_key",
              "partition_time"}. MissingError if there is none.
          get_tasks(run_key=None, workflow=None)   the tasks of a run, by default the asking task's: [{"task",
              "map_index", "state", "try_number", "max_tries", "operator", "pool", "queue", "started_at", "ended_at"}]
          get_previous_task(task=None, map_index=None, states=[], before=None)     the same task in the last run before
              this one (or before an instant) that has it (in one of the states), with "run_key" and "logical_time".
              MissingError if there is none.
          count_reschedules()                      how often the asking task's try has asked to be called again
          mask(values, name=None)                  replace these strings in this try's log from now on; with a name,
                                                   only what is a secret by that name or by one inside a value
          note_sent(misses, is_mailed=False)       an errand has told somebody of missed deadlines, by their ids

        About other workflows. `project` is by default the asking task's; if that has no such workflow, it is the only
        one that has. Instants are ISO 8601. A run is {"run_id", "run_key", "project", "workflow", "type", "state",
        "reason", "logical_time", "run_after", "started_at", "ended_at", "params", "attempt_id", "attempt_number",
        "is_paused"}; its state is queued, running, success, failed or canceled.
          get_workflow(workflow, project=None)     {"workflow", "project", "is_paused", "tasks": [key, …]}
          start_run(workflow, project=None, params={}, run_key=None, logical_time="now", run_after=None,
                    clears_existing=False)
              the run and "is_new"; False: there was one with this key or logical time, which was left alone or, with
              `clears_existing`, runs again from its start. A `logical_time` of None: the run has none.
          retry_run(run_id, attempt_name="", is_resuming=True)     another attempt of a run that has ended
          get_run(run_id) · get_run(workflow, project=None, run_key=None, logical_time=None)
              one run; without key and time the newest. MissingError if there is none.
          get_runs(workflow, project=None, run_keys=None, logical_times=None, states=None)     [run, …], newest first
          get_task_states(workflow, project=None, tasks=None, group=None, run_keys=None, logical_times=None)
              [run and "tasks": {key: {state: how many}}, …]: of the named tasks, of a group's or of all; the instances
              of a mapped task are counted one by one
          get_following_slot()                     {"logical_time", "run_at", "interval_start", "interval_end"} of what
                                                   the schedule has after the asking task's run; null: nothing
        """
        ...


def value_of(answer: Answer | None, verb: str) -> Any:
    """The decoded value of an answer. Raises MissingError or ChannelError; None stands for nobody who answers."""
    if answer is None:
        raise ChannelError(f"could not ask for `{verb}`: the supervisor is gone")
    if answer.is_missing:
        raise MissingError(answer.error or f"`{verb}` found nothing")
    if answer.error is not None:
        raise ChannelError(answer.error)
    return msgspec.json.decode(answer.value)
