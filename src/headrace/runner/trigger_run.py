"""One trigger from its making to its end."""

from __future__ import annotations

import asyncio
import importlib
import logging
import time
from collections.abc import Coroutine, Generator
from types import SimpleNamespace, TracebackType
from typing import Any

import msgspec

from headrace.authoring.dag.assets import AssetNameRef
from headrace.authoring.dag.context import current_engine
from headrace.authoring.dag.state_stores import AssetStateStores
from headrace.authoring.dag.triggers import BaseTaskEndEvent, TriggerEvent
from headrace.authoring.dag.values import decode_value, encode_value, length_of
from headrace.errors import did_you_mean
from headrace.handoff import Fired, RunTrigger, TaskError, user_traceback

log = logging.getLogger("headrace.triggers")

BLOCKED_SECONDS = 0.2
"""Other triggers should not have to wait longer than this for one that does not await."""
KILL_SECONDS = 30.0
"""How long `on_kill` may take."""

_classes: dict[str, asyncio.Future[Any]] = {}


async def make(order: RunTrigger) -> Any:
    """The trigger object, made of its path and arguments."""
    trigger_class = await _class(order.path)
    trigger = trigger_class(**{name: decode_value(value) for name, value in order.arguments.items()})
    trigger.trigger_id = order.id
    if order.asset:
        trigger.asset_state_store = _store_of(order.asset)
        return trigger
    trigger.task_instance = SimpleNamespace(
        task_id=order.request.key,
        dag_id=order.request.run.workflow,
        run_id=order.request.run.run_key,
        map_index=order.request.map_index,
        try_number=order.request.try_number,
    )
    return trigger


def _store_of(asset: str) -> Any:
    engine = current_engine()
    return None if engine is None else AssetStateStores([AssetNameRef(asset)], [], engine)


async def _class(path: str) -> Any:
    if path not in _classes:
        # In a thread: a module may take seconds to import, and the other triggers run on.
        _classes[path] = asyncio.ensure_future(asyncio.to_thread(_named, path))
    try:
        return await asyncio.shield(_classes[path])
    except Exception:
        # What is missing may be there the next time.
        _classes.pop(path, None)
        raise


async def first_event(order: RunTrigger, trigger: Any) -> Fired:
    """What the trigger has to tell first; nothing is said to be a failure, too."""
    events = trigger.run()
    try:
        async for event in events:
            return fired(order, event)
    finally:
        if hasattr(events, "aclose"):
            await events.aclose()
    return failure(order.id, f"trigger `{order.path}` ended without an event")


async def kill(trigger: Any) -> None:
    """Have the trigger end its work outside; what goes wrong is only logged."""
    try:
        await asyncio.wait_for(trigger.on_kill(), KILL_SECONDS)
    except TimeoutError:
        log.warning("on_kill took longer than %g s and was given up", KILL_SECONDS)
    except Exception as error:
        log.error("on_kill failed\n%s", user_traceback(error))


async def clean_up(trigger: Any) -> None:
    """Have the trigger let go of what it holds; what goes wrong is only logged."""
    try:
        await trigger.cleanup()
    except Exception as error:
        log.error("cleanup failed\n%s", user_traceback(error))


def failure(trigger_id: int, message: str, traceback: str = "") -> Fired:
    """The word of a trigger that will not fire."""
    error = TaskError(type="TaskDeferralError", message=message, traceback=traceback)
    return Fired(trigger_id=trigger_id, error=error)


def failure_of(order: RunTrigger, error: BaseException) -> Fired:
    """The word of a trigger that raised an exception."""
    message = f"trigger `{order.path}` failed: {type(error).__name__}: {error}".removesuffix(": ")
    return failure(order.id, message, user_traceback(error))


def fired(order: RunTrigger, event: Any) -> Fired:
    """The word of a trigger that has yielded an event."""
    if isinstance(event, BaseTaskEndEvent):
        values = {name: one for name, one in (event.xcoms or {}).items() if one is not None}
        return Fired(
            trigger_id=order.id,
            outcome=event.task_instance_state,  # type: ignore[arg-type]  # one of three by its class
            values={name: msgspec.Raw(encode_value(one, name)) for name, one in values.items()},
            lengths={name: length for name, one in values.items() if (length := length_of(one)) is not None},
        )
    if not isinstance(event, TriggerEvent):
        return failure(order.id, f"expected trigger `{order.path}` to yield a TriggerEvent, got: {event!r}")
    return Fired(trigger_id=order.id, event=msgspec.json.decode(encode_value(event.payload, "event")))


def _named(path: str) -> Any:
    module_name, _, name = path.rpartition(".")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise ImportError(f"{error}; a trigger's class must be in a module of its project or of a package") from error
    found = getattr(module, name, None)
    if found is None:
        hint = did_you_mean(name, dir(module))
        raise ImportError(f"module `{module_name}` has no `{name}`" + (f", {hint}" if hint else ""))
    return found


class Timed(Coroutine[Any, Any, None]):
    """A coroutine that is watched: a step which takes too long is told to the log of the trigger that made it."""

    def __init__(self, coroutine: Coroutine[Any, Any, None], order: RunTrigger) -> None:
        self._coroutine = coroutine
        self._order = order

    def send(self, value: Any) -> Any:
        began = time.monotonic()
        try:
            return self._coroutine.send(value)
        finally:
            self._judge(time.monotonic() - began)

    def throw(self, kind: Any, value: Any = None, trace: TracebackType | None = None) -> Any:
        # The form with three arguments is on its way out of Python.
        given = (kind,) if value is None and trace is None else (kind, value, trace)
        return self._coroutine.throw(*given)

    def close(self) -> None:
        self._coroutine.close()

    def __await__(self) -> Generator[Any, Any, None]:
        return self._coroutine.__await__()

    def _judge(self, seconds: float) -> None:
        if seconds > BLOCKED_SECONDS:
            log.warning(
                "trigger `%s` blocked all other triggers for %.2f s: it must await, or call blocking code in a thread",
                self._order.path,
                seconds,
            )
