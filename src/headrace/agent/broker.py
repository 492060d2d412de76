"""Answers the questions of user code, so that it never meets the database. `handoff.Channel` lists the verbs."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from headrace.errors import HeadraceError
from headrace.handoff import RETURN_VALUE, Answer, Ask, Source, TaskRequest
from headrace.store import (
    Store,
    TaskValues,
    attempt_of_run,
    delete_variable,
    get_connection,
    get_document,
    get_variable,
    instance_document,
    result_length,
    result_of,
    revision_content,
    set_value,
    set_variable,
    task_values,
)

_CACHED_RESULTS = 8
"""How many results are kept cut into elements: the instances of a mapped task ask for one after the other."""


class Elements(NamedTuple):
    """The answers to `get_element` about one result; `whole` if it has no elements that JSON knows of."""

    items: list[msgspec.Raw]
    whole: msgspec.Raw | None = None


class Missing(Exception):
    """What was asked for does not exist."""


class Broker:
    """Called with a request and its question; answers with JSON, never with an exception."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._elements: OrderedDict[tuple[int, int], Elements] = OrderedDict()
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
            "mask": self._nothing,
        }

    def __call__(self, request: TaskRequest, ask: Ask) -> Answer:
        verb = self._verbs.get(ask.verb)
        if verb is None:
            return Answer(id=ask.id, error=f"there is nothing called `{ask.verb}` to ask for")
        try:
            return Answer(id=ask.id, value=verb(request, **ask.args))
        except Missing:
            return Answer(id=ask.id, is_missing=True)
        except TypeError as error:
            return Answer(id=ask.id, error=f"the question `{ask.verb}` was asked wrongly: {error}")
        except HeadraceError as error:
            return Answer(id=ask.id, error=str(error))

    def content(self, source: Source) -> bytes | None:
        """What was kept of the source's revision."""
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
            found = result_of(tx, request.run.attempt_id, task)
            if found is None:
                raise Missing
            task_id, fence, is_mapped = found
            if is_mapped:
                document = _present(instance_document(tx, task_id, RETURN_VALUE, index))
                return _raw({"element": msgspec.Raw(document.encode())})
            elements = self._elements.get((task_id, fence))
            if elements is None:
                elements = self._keep((task_id, fence), _cut(_present(get_document(tx, task_id, RETURN_VALUE))))
        if elements.whole is not None:
            return elements.whole
        if index >= len(elements.items):
            raise Missing
        return elements.items[index]

    def _keep(self, key: tuple[int, int], elements: Elements) -> Elements:
        self._elements[key] = elements
        while len(self._elements) > _CACHED_RESULTS:
            self._elements.popitem(last=False)
        return elements

    def _set_value(self, request: TaskRequest, name: str, value: Any) -> msgspec.Raw:
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


def _present(document: str | None) -> str:
    if document is None:
        raise Missing
    return document


def _cut(document: str) -> Elements:
    """The answers to `get_element` for each element of a result."""
    if document.startswith("["):
        elements = msgspec.json.decode(document, type=list[msgspec.Raw])
        return Elements([_raw({"element": element}) for element in elements])
    pairs = msgspec.json.decode(document, type=dict[str, msgspec.Raw]) if document.startswith("{") else {}
    if pairs and "__type" not in pairs:
        return Elements([_raw({"pair": [key, value]}) for key, value in pairs.items()])
    return Elements([], _raw({"whole": msgspec.Raw(document.encode())}))


def _raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))
