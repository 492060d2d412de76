"""Waits for the end of one run, whichever workflow and project it is of."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from headrace.authoring.dag.context import current_engine
from headrace.authoring.dag.triggers import BaseTrigger, TriggerEvent

_ENDED = ("success", "failed", "canceled")


class RunEndTrigger(BaseTrigger):
    """Fires when a run has ended, and tells `{"run_id", "state"}`."""

    def __init__(self, run_id: int, poll_interval: float = 5.0) -> None:
        super().__init__()
        self.run_id = run_id
        self.poll_interval = poll_interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return f"{__name__}.RunEndTrigger", {"run_id": self.run_id, "poll_interval": self.poll_interval}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        while (run := await self._look())["state"] not in _ENDED:
            await asyncio.sleep(self.poll_interval)
        yield TriggerEvent({"run_id": run["run_key"], "state": run["state"]})

    async def _look(self) -> dict[str, Any]:
        engine = current_engine()
        if engine is None:
            raise RuntimeError("cannot look at other runs here: no trigger is running")
        run: dict[str, Any] = await asyncio.to_thread(engine.ask, "get_run", run_id=self.run_id)
        return run
