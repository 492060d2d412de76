"""What the scheduler's loop knows of a service."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Service(Protocol):
    """Does what is due, in transactions of its own, and may be stopped between any two of them."""

    @property
    def name(self) -> str:
        """For logs."""
        ...

    def tick(self, now: datetime) -> int:
        """Do what is due, or a good part of it. Returns how many things were done; 0: nothing is left for now."""
        ...
