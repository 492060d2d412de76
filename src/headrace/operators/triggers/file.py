"""Waiting for files. Looking happens in a thread: a slow file system must not hold up other triggers."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from glob import iglob
from typing import Any

from headrace.authoring.dag.triggers import BaseEventTrigger, BaseTrigger, TriggerEvent

_MODULE = "airflow.providers.standard.triggers.file"


class FileTrigger(BaseTrigger):
    """Fires when a file matches the pattern, or a folder that matches has a file in it."""

    def __init__(self, filepath: str, recursive: bool = False, poke_interval: float = 5.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.filepath = filepath
        self.recursive = recursive
        self.poke_interval = poke_interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        arguments = {"filepath": self.filepath, "recursive": self.recursive, "poke_interval": self.poke_interval}
        return f"{_MODULE}.FileTrigger", arguments

    async def run(self) -> AsyncIterator[TriggerEvent]:
        while (found := await asyncio.to_thread(_find, self.filepath, self.recursive)) is None:
            await asyncio.sleep(self.poke_interval)
        self.log.info("found `%s`", found)
        yield TriggerEvent(True)


class FileDeleteTrigger(BaseEventTrigger):
    """Fires when this very file is there, and deletes it."""

    def __init__(self, filepath: str, poke_interval: float = 5.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.filepath = filepath
        self.poke_interval = poke_interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        arguments = {"filepath": self.filepath, "poke_interval": self.poke_interval}
        return f"{_MODULE}.FileDeleteTrigger", arguments

    async def run(self) -> AsyncIterator[TriggerEvent]:
        while not await asyncio.to_thread(_take, self.filepath):
            await asyncio.sleep(self.poke_interval)
        self.log.info("found `%s` and deleted it", self.filepath)
        yield self.event()

    def event(self) -> TriggerEvent:
        """What it tells."""
        return TriggerEvent(True)


class DirectoryFileDeleteTrigger(FileDeleteTrigger):
    """Fires when a file of this name is in a folder, and deletes it."""

    def __init__(self, *, directory: str, filename: str, poke_interval: float = 5.0) -> None:
        super().__init__(os.path.join(directory, filename), poke_interval)
        self.directory = directory
        self.filename = filename

    def serialize(self) -> tuple[str, dict[str, Any]]:
        arguments = {"directory": self.directory, "filename": self.filename, "poke_interval": self.poke_interval}
        return f"{_MODULE}.DirectoryFileDeleteTrigger", arguments

    def event(self) -> TriggerEvent:
        return TriggerEvent({"filepath": self.filepath})


def _find(pattern: str, recursive: bool) -> str | None:
    for path in iglob(pattern, recursive=recursive):
        if os.path.isfile(path) or any(files for _, _, files in os.walk(path)):
            return path
    return None


def _take(path: str) -> bool:
    if not os.path.isfile(path):
        return False
    os.unlink(path)
    return True
