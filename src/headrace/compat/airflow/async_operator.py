"""Operators whose work is a coroutine."""

from __future__ import annotations

import asyncio
from typing import Any

from headrace.authoring.dag import BaseOperator, Context


class BaseAsyncOperator(BaseOperator):
    """Subclasses say in `aexecute` what to do; it has the task's process and an event loop for itself."""

    @property
    def is_async(self) -> bool:
        return True

    async def aexecute(self, context: Context) -> Any:
        """Do the work; what is returned becomes the task's result."""
        raise NotImplementedError(f"{type(self).__name__} has no aexecute()")

    def execute(self, context: Context) -> Any:
        return asyncio.run(self.aexecute(context))
