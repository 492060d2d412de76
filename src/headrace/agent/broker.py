"""Answers the questions of user code, so that it never meets the database. `handoff.Channel` lists the verbs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import msgspec

from headrace.agent.run_desk import RunDesk
from headrace.clock import Clock, SystemClock
from headrace.definition import NOTIFY
from headrace.errors import HeadraceError, NotFoundError, StateError
from headrace.handoff import RETURN_VALUE, Answer, Ask, Source, TaskRequest
from headrace.settings import NotificationSettings
from headrace.store import (
    Elements,
    Store,
    TaskValues,
    attempt_of_run,
    delete_variable,
    get_connection,
    get_variable,
    result_length,
    revision_content,
    set_value,
    set_variable,
    task_values,
)


class Missing(Exception):
    """What was asked for does not exist."""


class Broker:
    """Called with a request and its question; answers with JSON, never with an exception."""

    def __init__(
        self, store: Store, clock: Clock | None = None, notification: NotificationSettings | None = None
    ) -> None:
        self._store = store
        self._notification = notification
        self.runs = RunDesk(store, clock or SystemClock())
        self._verbs: dict[str, Callable[..., msgspec.Raw]] = {
            "get_value": self._get_value,
            "get_values": self._get_values,
            "get_length": self._get_length,
            "get_element": self._get_element,
            "set_value": self._set_value,
            "get_variable": self._get_variable,
            "set_variable": self._set_variable,
            "delete_variable": self._delete_variable,
            "get_connection": self._get_connection,
            "get_secret": self._get_secret,
            "get_notification": self._get_notification,
            "mask": self._nothing,
            **{name: _encoded(verb) for name, verb in self.runs.verbs.items()},
        }

    def __call__(self, request: TaskRequest, ask: Ask) -> Answer:
        verb = self._verbs.get(ask.verb)
        if verb is None:
            return Answer(id=ask.id, error=f"there is nothing called `{ask.verb}` to ask for")
        try:
            return Answer(id=ask.id, value=verb(request, **ask.args))
        except Missing:
            return Answer(id=ask.id, is_missing=True)
        except NotFoundError as error:
            return Answer(id=ask.id, is_missing=True, error=str(error))
        except TypeError as error:
            return Answer(id=ask.id, error=f"the question `{ask.verb}` was asked wrongly: {error}")
        except HeadraceError as error:
            return Answer(id=ask.id, error=str(error))

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

    def _set_value(self, request: TaskRequest, name: str, value: Any) -> msgspec.Raw:
        if request.errand is not None:
            raise StateError("an errand has no results: only a task can store a value")
        length = len(value) if isinstance(value, list | dict) else None
        document = msgspec.json.encode(value).decode()
        with self._store.begin() as tx:
            set_value(tx, request.task_id, request.run.attempt_id, name, document, length)
        return _raw(None)

    def _get_variable(self, request: TaskRequest, name: str) -> msgspec.Raw:
        with self._store.read() as tx:
            document = get_variable(tx, name)
        if document is None:
            raise Missing
        return msgspec.Raw(document.encode())

    def _set_variable(self, request: TaskRequest, name: str, value: Any) -> msgspec.Raw:
        with self._store.begin() as tx:
            set_variable(tx, name, msgspec.json.encode(value).decode())
        return _raw(None)

    def _delete_variable(self, request: TaskRequest, name: str) -> msgspec.Raw:
        with self._store.begin() as tx:
            return _raw(delete_variable(tx, name))

    def _get_connection(self, request: TaskRequest, name: str) -> msgspec.Raw:
        with self._store.read() as tx:
            document = get_connection(tx, name)
        if document is None:
            raise Missing
        return msgspec.Raw(document.encode())

    def _get_secret(self, request: TaskRequest, name: str) -> msgspec.Raw:
        # Secrets are variables of the project under a name of their own, which nothing else can have.
        return self._get_variable(request, f"secret:{request.run.project}:{name}")

    def _get_notification(self, request: TaskRequest) -> msgspec.Raw:
        # It holds passwords, so that only the operator which sends notifications is told, and never user code.
        if self._notification is None or self._notification.type is None or request.node.operator != NOTIFY:
            raise Missing
        return _raw(asdict(self._notification))

    def _nothing(self, request: TaskRequest, **_: Any) -> msgspec.Raw:
        return _raw(None)  # the executor, which writes the log, has taken note already


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
