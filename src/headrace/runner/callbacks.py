"""Calling user code about something that has happened: whatever goes wrong in it is told and changes nothing."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Iterable
from typing import Any

from headrace.authoring.dag.notifier import BaseNotifier
from headrace.template.jinja import Renderer, RenderOptions

log = logging.getLogger("airflow.task")


def call_all(callbacks: Iterable[Callable[[Any], Any]], context: Any, name: str) -> list[Exception]:
    """Call them in their order with the context. One that fails is logged, and the next one is called."""
    errors: list[Exception] = []
    for callback in callbacks:
        try:
            _prepared(callback, context)(context)
        except Exception as error:
            log.exception("%s failed", name)
            errors.append(error)
    return errors


def _prepared(callback: Callable[[Any], Any], context: Any) -> Callable[[Any], Any]:
    """The callback itself; a notifier with its fields rendered, which leaves the one in the file as it is."""
    if not isinstance(callback, BaseNotifier) or not callback.template_fields:
        return callback
    renderer, notifier = renderer_of(context["dag"], context), copy.copy(callback)
    for name in callback.template_fields:
        setattr(notifier, name, renderer.render(getattr(callback, name, None), callback.template_ext, []))
    return notifier


def renderer_of(dag: Any, context: Any) -> Renderer:
    """What renders the fields of notifiers; without a DAG, there is nothing that the DAG adds to templates."""
    if dag is None:
        return Renderer(RenderOptions(), context)
    options = RenderOptions(
        search_path=list(dag.template_searchpath or ()),
        macros=dag.user_defined_macros or {},
        filters=dag.user_defined_filters or {},
        environment=dag.jinja_environment_kwargs or {},
        undefined=dag.template_undefined,
        is_native=False,
    )
    return Renderer(options, context)
