"""Running a trigger that watches an asset: all its events are told, and it begins anew whenever it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from headrace.handoff import Fired, RunTrigger, user_traceback
from headrace.runner.trigger_run import clean_up, fired, log, make

_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 60.0


async def watch(order: RunTrigger, tell: Callable[[Fired], None]) -> None:
    """Watch until this is cancelled. One that fails, or ends without an event, begins anew after a growing pause."""
    pause = 0.0
    while True:
        has_told = await _watch_once(order, tell)
        pause = _FIRST_PAUSE_SECONDS if has_told else min(_LONGEST_PAUSE_SECONDS, 2 * pause or _FIRST_PAUSE_SECONDS)
        await asyncio.sleep(pause)


async def _watch_once(order: RunTrigger, tell: Callable[[Fired], None]) -> bool:
    """Whether it had something to tell until it ended."""
    trigger, has_told = None, False
    try:
        trigger = await make(order)
        async for event in trigger.run():
            message = fired(order, event)
            if message.error is not None:
                log.error("%s", message.error.message)
                continue
            tell(message)
            has_told = True
    # Leaving the process is the trigger's mistake, too: all others run in it.
    except (Exception, SystemExit) as error:
        log.error("watcher `%s` failed: %s: %s\n%s", order.path, type(error).__name__, error, user_traceback(error))
    finally:
        if trigger is not None:
            await clean_up(trigger)
    return has_told
