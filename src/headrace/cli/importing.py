"""Imports what a command needs. Looking for garbage meanwhile would take a tenth of the time of a start, in vain."""

from __future__ import annotations

import gc
from importlib import import_module
from typing import Any

_OBJECTS_BETWEEN_COLLECTIONS = 50_000


class Imports:
    """How this process imports commands."""

    def __init__(self) -> None:
        self._are_kept = False

    def keep(self) -> None:
        """The process is the command's own: what it imports stays until its end, and need never be looked through."""
        self._are_kept = True
        gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)

    def take(self, name: str) -> Any:
        """The module with this name."""
        if not self._are_kept:
            return import_module(name)
        gc.disable()
        try:
            return import_module(name)
        finally:
            gc.freeze()
            gc.enable()


imports = Imports()
