"""Renders the arguments of a task of a Python DAG, and keeps what came out for people to see."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Any

import msgspec

from headrace.authoring.dag import BaseOperator
from headrace.authoring.dag.exceptions import AirflowException
from headrace.authoring.dag.values import encode_value
from headrace.definition import storable
from headrace.template.jinja import Renderer, RenderError, RenderOptions

log = logging.getLogger("airflow.task")

LONGEST_SHOWN = 4096
"""Characters of one rendered argument that are kept."""
LONGEST_LABEL = 250


class Rendering:
    """The templates of one try."""

    def __init__(self, dag: Any, task: Any, folder: str, context: Mapping[str, Any]) -> None:
        self._dag = dag
        self._task = task
        self._folder = folder
        self._context = context
        self.shown: dict[str, msgspec.Raw] = {}
        """The arguments that had something to render, as JSON."""

    @cached_property
    def renderer(self) -> Renderer:
        """Made for the first argument that has a value: many tasks have none."""
        return Renderer(self._options, self._context)

    def _options(self) -> RenderOptions:
        dag, is_native = self._dag, self._task.render_template_as_native_obj
        return RenderOptions(
            search_path=[self._folder, *(dag.template_searchpath or ())],
            macros=dag.user_defined_macros or {},
            filters=dag.user_defined_filters or {},
            environment=dag.jinja_environment_kwargs or {},
            undefined=dag.template_undefined,
            is_native=dag.render_template_as_native_obj if is_native is None else is_native,
        )

    def render_task(self, untouched: Collection[int]) -> None:
        """Replace the operator's templates, by its own way if it has one."""
        task = self._task
        if type(task).render_template_fields is BaseOperator.render_template_fields:
            self.render_fields(untouched)
            return
        task.prepare_template()
        before = {name: getattr(task, name, None) for name in task.template_fields}
        task.render_template_fields(self._context, self.renderer.environment)
        for name, value in before.items():
            rendered = getattr(task, name, None)
            if rendered != value:
                self.shown[name] = _for_people(rendered, name)

    def render_fields(self, untouched: Collection[int]) -> None:
        """Replace the operator's templates by what they say; values whose `id` is in `untouched` stay."""
        task = self._task
        task.prepare_template()
        for name in task.template_fields:
            try:
                value = getattr(task, name, None)
                rendered = self._rendered(value, untouched) if value else value
            except RenderError as error:
                raise RenderError(f"could not render `{name}` of task `{task.task_id}`: {error}") from error
            if rendered is not value:
                # Around the operator's own setter, which would look for new dependencies.
                task.__dict__[name] = rendered
            if rendered is not value and rendered != value:
                self.shown[name] = _for_people(rendered, name)

    def render(self, value: Any) -> Any:
        """A value with every template in it rendered."""
        return self.renderer.render(value, self._task.template_ext)

    def _rendered(self, value: Any, untouched: Collection[int]) -> Any:
        if callable(value) and not hasattr(value, "resolve") and id(value) not in untouched:
            # A function in place of a value gets the context and what templates are made with.
            return value(context=self._context, jinja_env=self.renderer.environment)
        return self.renderer.render(value, self._task.template_ext, untouched)

    def label(self, map_index: int) -> str:
        """The name of a mapped instance for people; empty if it has none."""
        template = self._task.map_index_template
        if not template or map_index < 0:
            return ""
        try:
            return storable(str(self.renderer.render(template))[:LONGEST_LABEL])
        except Exception as error:
            log.warning("the map_index_template of task `%s` could not be rendered: %s", self._task.task_id, error)
            return ""


def _for_people(value: Any, name: str) -> msgspec.Raw:
    try:
        document = encode_value(value, name)
    except (AirflowException, TypeError, ValueError, RecursionError):
        document = msgspec.json.encode(_text(value))
    if len(document) > LONGEST_SHOWN:
        document = msgspec.json.encode(document.decode(errors="replace")[:LONGEST_SHOWN] + " … (cut)")
    return msgspec.Raw(document)


def _text(value: Any) -> str:
    try:
        return storable(str(value))
    except Exception as error:
        return f"<{type(value).__name__} that cannot be shown: {error}>"
