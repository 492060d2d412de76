"""The elements of results that tasks are mapped over: a result is read and cut once for all its instances."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NamedTuple

import msgspec

from headrace.handoff import RETURN_VALUE
from headrace.store.database import Reply, Transaction
from headrace.store.values import get_document, instance_document, result_of

_KEPT_RESULTS = 8
"""How many results are kept cut into elements: the instances of a mapped task ask for one after the other."""


class Cut(NamedTuple):
    """The answers about each element of one result; `whole` if it has no elements that JSON knows of."""

    items: list[msgspec.Raw]
    whole: msgspec.Raw | None = None


class Elements:
    """Answers as the channel's `get_element` promises them."""

    def __init__(self) -> None:
        self._cuts: OrderedDict[tuple[int, int], Cut] = OrderedDict()

    def element(self, tx: Transaction, attempt_id: int, task: str, index: int) -> msgspec.Raw | None:
        """One element of a task's result; None if there is none."""
        return self.elements(tx, attempt_id, task, [index]).get(index)

    def elements(
        self, tx: Transaction, attempt_id: int, task: str, indexes: list[int], asked: Reply | None = None
    ) -> dict[int, msgspec.Raw]:
        """Those of the elements that there are, by index. `asked`: the question for the result, if it is under way."""
        found = result_of(tx, attempt_id, task, asked)
        if found is None:
            return {}
        task_id, fence, is_mapped = found
        if is_mapped:
            documents = {index: instance_document(tx, task_id, RETURN_VALUE, index) for index in indexes}
            return {index: _raw({"element": msgspec.Raw(one.encode())}) for index, one in documents.items() if one}
        # The fence changes whenever the result may have changed, so nothing stale is ever found here.
        cut = self._cuts.get((task_id, fence)) or self._read(tx, task_id, fence)
        if cut.whole is not None:
            return dict.fromkeys(indexes, cut.whole)
        return {index: cut.items[index] for index in indexes if index < len(cut.items)}

    def _read(self, tx: Transaction, task_id: int, fence: int) -> Cut:
        document = get_document(tx, task_id, RETURN_VALUE)
        if document is None:
            return Cut([])
        cut = self._cuts[(task_id, fence)] = _cut(document)
        while len(self._cuts) > _KEPT_RESULTS:
            self._cuts.popitem(last=False)
        return cut


def _cut(document: str) -> Cut:
    if document.startswith("["):
        return Cut([_raw({"element": one}) for one in msgspec.json.decode(document, type=list[msgspec.Raw])])
    pairs = msgspec.json.decode(document, type=dict[str, msgspec.Raw]) if document.startswith("{") else {}
    if pairs and "__type" not in pairs:
        return Cut([_raw({"pair": [key, value]}) for key, value in pairs.items()])
    return Cut([], _raw({"whole": msgspec.Raw(document.encode())}))


def _raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))
