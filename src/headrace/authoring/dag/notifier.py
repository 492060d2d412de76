"""Notifiers: callbacks that are objects, with fields that are rendered before each call."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any


class BaseNotifier:
    """Subclasses say in `notify` what to send, and in `template_fields` which attributes are rendered before."""

    template_fields: Sequence[str] = ()
    template_ext: Sequence[str] = ()

    def __init__(self, **kwargs: Any) -> None:
        super().__init__()

    def notify(self, context: Any) -> None:
        """Send it."""
        raise NotImplementedError(f"{type(self).__name__} has no notify()")

    @property
    def log(self) -> logging.Logger:
        return logging.getLogger("airflow.task")

    def __call__(self, *args: Any) -> None:
        """Called as any callback is: with the context."""
        self.notify(args[0] if args else {})
