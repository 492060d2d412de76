"""Notifiers: callbacks that are objects, with fields that are rendered before each call."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterable, Sequence
from typing import Any

# Named, not imported: files are loaded without ever rendering anything.
_CALLBACKS = "headrace.runner.callbacks"


class BaseNotifier:
    """Subclasses say in `notify` what to send, and in `template_fields` which attributes are rendered before."""

    template_fields: Sequence[str] = ()
    template_ext: Sequence[str] = ()

    def __init__(self, **kwargs: Any) -> None:
        super().__init__()

    def notify(self, context: Any) -> None:
        """Send it."""
        raise NotImplementedError(f"{type(self).__name__} has no notify()")

    def get_template_env(self, dag: Any = None) -> Any:
        """What templates are made with."""
        return importlib.import_module(_CALLBACKS).renderer_of(dag, {}).environment

    def _do_render_template_fields(
        self, parent: Any, template_fields: Iterable[str], context: Any, jinja_env: Any, seen_oids: Any
    ) -> None:
        # Notifiers of providers call it by this name to render what they find in a connection.
        renderer = importlib.import_module(_CALLBACKS).renderer_of(context.get("dag"), context)
        renderer.environment = jinja_env
        for name in template_fields:
            setattr(parent, name, renderer.render(getattr(parent, name), self.template_ext))

    @property
    def log(self) -> logging.Logger:
        return logging.getLogger("airflow.task")

    def __call__(self, *args: Any) -> None:
        """Called as any callback is: with the context."""
        self.notify(args[0] if args else {})
