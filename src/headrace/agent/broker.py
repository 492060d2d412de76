"""Answers the questions of user code, so that it never meets the database. `handoff.Channel` lists the verbs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import cached_property, partial
from typing import Any

import msgspec

from headrace.agent.answers import asset_events_answer, described_event, described_run
from headrace.agent.memo_desk import MemoDesk
from headrace.agent.run_desk import RunDesk
from headrace.agent.task_desk import TaskDesk
from headrace.clock import Clock, SystemClock
from headrace.definition import NOTIFY
from headrace.errors import HeadraceError, NotFoundError, StateError, StoreUnreachableError
from headrace.executor.contract import Later
from headrace.executor.questions import PATIENCE_SECONDS
from headrace.handoff import RETURN_VALUE, Answer, Ask, Source, TaskRequest
from headrace.secrets import Vault
from headrace.settings import NotificationSettings
from headrace.store import (
    Elements,
    NamedValue,
    Store,
    TaskValues,
    attempt_of_run,
    delete_values,
    list_assets,
    named_values,
    newest_attempt_with_value,
    note_sent,
    previous_run,
    result_length,
    revision_content,
    set_value,
    task_values,
    triggering_events,
)

_MAY_BE_ASKED_TWICE = ("get_", "list_", "set_", "delete_")


class Missing(Exception):
    """What was asked for does not exist."""


class Broker:
    """Called with a request and its question; answers with JSON, and raises only `Later`."""

    def __init__(
        self,
        store: Store,
        clock: Clock | None = None,
        notification: NotificationSettings | None = None,
        open_vault: Callable[[], Vault] | None = None,
    ) -> None:
        """`open_vault` is called when something is first asked of the vault; without it, the store's own is used."""
        self._store = store
        self._notification = notification
        self._open_vault = open_vault or partial(Vault, store)
        clock = clock or SystemClock()
        self.runs = RunDesk(store, clock)
        self.owner_of_secrets: Callable[[str], str] = str
        """The name under which the vault has the secrets of a project."""
        desks = (self.runs.verbs, TaskDesk(store).verbs, MemoDesk(store, clock).verbs)
        self._verbs: dict[str, Callable[..., msgspec.Raw]] = {
            "get_value": self._get_value,
            "get_values": self._get_values,
            "get_results": self._get_results,
            "delete_values": self._delete_values,
            "get_length": self._get_length,
            "get_element": self._get_element,
            "set_value": self._set_value,
            "get_variable": self._get_variable,
            "set_variable": self._set_variable,
            "delete_variable": self._delete_variable,
            "list_variables": self._list_variables,
            "get_connection": self._get_connection,
            "get_secret": self._get_secret,
            "get_notification": self._get_notification,
            "get_asset": self._get_asset,
            "get_asset_events": self._get_asset_events,
            "get_triggering_events": self._get_triggering_events,
            "get_previous_run": self._get_previous_run,
            "note_sent": self._note_sent,
            "mask": self._nothing,
            **{name: _encoded(verb) for verbs in desks for name, verb in verbs.items()},
        }

    def __call__(self, request: TaskRequest, ask: Ask) -> Answer:
        verb = self._verbs.get(ask.verb)
        if verb is None:
            return Answer(id=ask.id, error=f"there is nothing called `{ask.verb}` to ask for")
        return self._answered(ask, lambda: verb(request, **ask.args))

    def while_loading(self, ask: Ask) -> Answer:
        """Answers a file that is being loaded, which belongs to no task and changes nothing."""
        if ask.verb == "get_variable":
            return self._answered(ask, lambda: _raw(self._vault.variable(**ask.args)))
        if ask.verb == "get_connection":
            return self._answered(ask, lambda: _raw(self._vault.connection(**ask.args)))
        return Answer(id=ask.id, error=f"a file cannot ask for `{ask.verb}` while it is loaded")

    def _answered(self, ask: Ask, work: Callable[[], msgspec.Raw]) -> Answer:
        try:
            return Answer(id=ask.id, value=work())
        except Missing:
            return Answer(id=ask.id, is_missing=True)
        except NotFoundError as error:
            return Answer(id=ask.id, is_missing=True, error=str(error))
        except StoreUnreachableError as error:
            seconds = self._store.outage.met(error)
            if ask.verb.startswith(_MAY_BE_ASKED_TWICE) and self._store.outage.seconds < PATIENCE_SECONDS:
                # While the database restarts: that should cost no try.
                raise Later(str(error), seconds) from error
            return Answer(id=ask.id, error=str(error))
        except TypeError as error:
            return Answer(id=ask.id, error=f"the question `{ask.verb}` was asked wrongly: {error}")
        except HeadraceError as error:
            return Answer(id=ask.id, error=str(error))

    @cached_property
    def _vault(self) -> Vault:
        return self._open_vault()

    def content(self, source: Source) -> bytes | None:
        """What was kept of the source's revision. What was pushed is kept with everything around it, not here."""
        if source.archive:
            return None
        with self._store.read() as tx:
            return revision_content(tx, source.root, source.file, source.revision)

    def _get_value(
        self,
        request: TaskRequest,
        task: str,
        name: str = RETURN_VALUE,
        map_index: int | None = None,
        run_key: str | None = None,
        workflow: str | None = None,
    ) -> msgspec.Raw:
        with self._store.read() as tx:
            attempt_id: int | None = request.run.attempt_id
            if run_key is not None or workflow is not None:
                attempt_id = attempt_of_run(tx, workflow or request.run.workflow, run_key or request.run.run_key)
            values = task_values(tx, attempt_id or 0, [task], name).get(task)
        if values is None:
            raise Missing
        return _document(values, map_index)

    def _get_values(self, request: TaskRequest, tasks: list[str], name: str = RETURN_VALUE) -> msgspec.Raw:
        with self._store.read() as tx:
            found = task_values(tx, request.run.attempt_id, tasks, name)
        present = {}
        for key, values in found.items():
            try:
                present[key] = _document(values, None)
            except Missing:
                continue
        return _raw(present)

    def _get_results(
        self,
        request: TaskRequest,
        tasks: list[str],
        name: str | None = RETURN_VALUE,
        run_key: str | None = None,
        workflow: str | None = None,
        include_prior: bool = False,
    ) -> msgspec.Raw:
        run, found = request.run, []
        with self._store.read() as tx:
            for task in tasks:
                attempt_id: int | None = run.attempt_id
                if include_prior:
                    attempt_id = newest_attempt_with_value(
                        tx, workflow or run.workflow, task, name or RETURN_VALUE, run.run_id
                    )
                elif run_key is not None or workflow is not None:
                    attempt_id = attempt_of_run(tx, workflow or run.workflow, run_key or run.run_key)
                found += named_values(tx, attempt_id, [task], name) if attempt_id is not None else []
        return _raw([_described(one) for one in found])

    def _delete_values(self, request: TaskRequest, name: str | None = None) -> msgspec.Raw:
        with self._store.begin() as tx:
            return _raw(delete_values(tx, request.task_id, name))

    def _get_length(self, request: TaskRequest, task: str) -> msgspec.Raw:
        with self._store.read() as tx:
            length = result_length(tx, request.run.attempt_id, task)
        if length is None:
            raise Missing
        return _raw(length)

    def _get_element(self, request: TaskRequest, task: str, index: int) -> msgspec.Raw:
        with self._store.read() as tx:
            element = tx.shared(Elements).element(tx, request.run.attempt_id, task, index)
        if element is None:
            raise Missing
        return element

    def _set_value(self, request: TaskRequest, name: str, value: Any, length: int | None = None) -> msgspec.Raw:
        if request.errand is not None:
            raise StateError("an errand has no results: only a task can store a value")
        if length is None and isinstance(value, list | dict):
            length = len(value)
        document = msgspec.json.encode(value).decode()
        with self._store.begin() as tx:
            set_value(tx, request.task_id, request.run.attempt_id, name, document, length)
        return _raw(None)

    def _get_variable(self, request: TaskRequest, name: str) -> msgspec.Raw:
        return _raw(self._vault.variable(name))

    def _set_variable(self, request: TaskRequest, name: str, value: Any, description: str | None = None) -> msgspec.Raw:
        self._vault.set_variable(name, value, description)
        return _raw(None)

    def _delete_variable(self, request: TaskRequest, name: str) -> msgspec.Raw:
        return _raw(self._vault.delete("variable", name))

    def _list_variables(self, request: TaskRequest, prefix: str = "") -> msgspec.Raw:
        return _raw([name for name in self._vault.names("variable") if name.startswith(prefix)])

    def _get_connection(self, request: TaskRequest, name: str) -> msgspec.Raw:
        return _raw(self._vault.connection(name))

    def _get_secret(self, request: TaskRequest, name: str) -> msgspec.Raw:
        return _raw(self._vault.secret(self.owner_of_secrets(request.run.project), name))

    def _get_notification(self, request: TaskRequest) -> msgspec.Raw:
        # It holds passwords, so that only the operator which sends notifications is told, and never user code.
        if self._notification is None or self._notification.type is None or request.node.operator != NOTIFY:
            raise Missing
        return _raw(asdict(self._notification))

    def _get_asset(self, request: TaskRequest, name: str) -> msgspec.Raw:
        with self._store.read() as tx:
            found = list_assets(tx, name=name)
        if not found:
            raise Missing
        row = found[0]
        return _raw({"name": row.name, "uri": row.uri, "group": row.group, "extra": msgspec.Raw(row.extra.encode())})

    def _get_asset_events(
        self,
        request: TaskRequest,
        asset: str | None = None,
        alias: str | None = None,
        after: str | None = None,
        before: str | None = None,
        ascending: bool = True,
        limit: int | None = None,
    ) -> msgspec.Raw:
        with self._store.read() as tx:
            return asset_events_answer(tx, asset, alias, after, before, ascending, limit)

    def _get_triggering_events(self, request: TaskRequest) -> msgspec.Raw:
        with self._store.read() as tx:
            return _raw([described_event(row) for row in triggering_events(tx, request.run.run_id)])

    def _get_previous_run(
        self, request: TaskRequest, is_success: bool = False, states: list[str] | None = None
    ) -> msgspec.Raw:
        with self._store.read() as tx:
            found = previous_run(tx, request.run.run_id, ["success"] if is_success else states or ())
        if found is None:
            raise Missing
        return _raw(described_run(found))

    def _note_sent(self, request: TaskRequest, misses: list[int], is_mailed: bool = False) -> msgspec.Raw:
        if request.errand is None:
            raise StateError("a task cannot say that somebody was told of a missed deadline")
        with self._store.begin() as tx:
            note_sent(tx, request.run.run_id, misses, is_mailed=is_mailed)
        return _raw(None)

    def _nothing(self, request: TaskRequest, **_: Any) -> msgspec.Raw:
        return _raw(None)  # the executor, which writes the log, has taken note already


def _described(value: NamedValue) -> dict[str, Any]:
    described = {"task": value.task, "map_index": value.map_index, "is_mapped": value.kind == "mapped"}
    if value.document is None:
        return described
    return {**described, "name": value.name, "value": msgspec.Raw(value.document.encode())}


def _document(values: TaskValues, map_index: int | None) -> msgspec.Raw:
    if map_index is not None:
        if map_index not in values.by_index:
            raise Missing
        return msgspec.Raw(values.by_index[map_index].encode())
    if values.is_mapped:
        return msgspec.Raw(("[" + ",".join(values.documents) + "]").encode())
    if not values.by_index:
        raise Missing
    return msgspec.Raw(values.documents[0].encode())


def _encoded(verb: Callable[..., Any]) -> Callable[..., msgspec.Raw]:
    return lambda request, **args: _raw(verb(request, **args))


def _raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))
