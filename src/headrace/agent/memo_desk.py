"""Answers tasks that keep values beyond a try: their own, and those of the assets that they name."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec

from headrace.clock import Clock, to_micros
from headrace.errors import NotFoundError, StateError
from headrace.handoff import TaskRequest
from headrace.store import MemoOwner, Store, Transaction, asset_owner, delete_memos, get_memo, set_memo


class MemoDesk:
    """The verbs about memos. Each is called with the asking task's request and the question's arguments."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    @property
    def verbs(self) -> dict[str, Callable[..., Any]]:
        return {"get_memo": self._get, "set_memo": self._set, "delete_memos": self._delete}

    def _get(self, request: TaskRequest, name: str, asset: str | None = None) -> Any:
        with self._store.read() as tx:
            document = get_memo(tx, _owner(tx, request, asset), name, to_micros(self._clock.now()))
        if document is None:
            raise NotFoundError(f"nothing is kept under the name `{name}`")
        return msgspec.Raw(document.encode())

    def _set(
        self, request: TaskRequest, name: str, value: Any, asset: str | None = None, seconds: float | None = None
    ) -> None:
        now = self._clock.now()
        expires_at = None if seconds is None else to_micros(now + timedelta(seconds=seconds))
        document = msgspec.json.encode(value).decode()
        with self._store.begin() as tx:
            set_memo(tx, _owner(tx, request, asset), name, document, to_micros(now), expires_at)

    def _delete(self, request: TaskRequest, name: str | None = None, asset: str | None = None) -> int:
        with self._store.begin() as tx:
            return delete_memos(tx, _owner(tx, request, asset), name)


def _owner(tx: Transaction, request: TaskRequest, asset: str | None) -> MemoOwner:
    if asset is None:
        if not request.key:
            raise StateError("only a task keeps values of its own, and nothing asks on behalf of one here")
        return MemoOwner("task", request.run.run_id, request.key, request.map_index)
    owner = asset_owner(tx, asset)
    if owner is None:
        raise StateError(f"no workflow names an asset `{asset}`, so that nothing can be kept for it")
    return owner
