"""{{ Jinja }} in task arguments: sandboxed, strict about names that do not exist, and free for text without markers."""

from __future__ import annotations

import copy
import functools
from collections import ChainMap
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

_MARKERS = ("{{", "{%", "{#")


class RenderError(Exception):
    """A template could not be rendered."""


@dataclass(frozen=True)
class RenderOptions:
    """What a workflow adds to its templates."""

    search_path: Sequence[str] = ()
    macros: Mapping[str, Any] = field(default_factory=dict)
    filters: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    undefined: Any = None
    is_native: bool = False
    """Whether a template gives Python values (`1` an int) instead of text."""


class Renderer:
    """Renders values of any shape. Jinja is imported when the first real template is met."""

    def __init__(self, options: RenderOptions | Callable[[], RenderOptions], context: Mapping[str, Any]) -> None:
        """Options may be a function that makes them for the first real template: most tasks have none."""
        self._options = options
        self._context = context

    def render(self, value: Any, suffixes: Sequence[str] = (), untouched: Collection[int] = ()) -> Any:
        """The value with every template in it rendered; objects whose `id` is in `untouched` stay as they are.

        A text that ends with one of the suffixes names a template file.
        """
        if id(value) in untouched:
            return value
        if isinstance(value, str):
            return self._text(value, suffixes)
        if callable(getattr(value, "resolve", None)):
            return value.resolve(self._context)
        return self._inside(value, suffixes, untouched)

    def _inside(self, value: Any, suffixes: Sequence[str], untouched: Collection[int]) -> Any:
        if isinstance(value, tuple):
            items = self._each(value, suffixes, untouched)
            return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
        if isinstance(value, list):
            return self._each(value, suffixes, untouched)
        if isinstance(value, dict):
            return dict(zip(value, self._each(value.values(), suffixes, untouched), strict=True))
        if isinstance(value, set):
            return set(self._each(value, suffixes, untouched))
        if isinstance(value, type) or not getattr(value, "template_fields", ()):
            return value
        # The original stays as it was written: a process may serve the same task again.
        rendered = copy.copy(value)
        for name in value.template_fields:
            setattr(rendered, name, self.render(getattr(value, name), suffixes, untouched))
        return rendered

    def _each(self, values: Iterable[Any], suffixes: Sequence[str], untouched: Collection[int]) -> list[Any]:
        rendered = []
        for value in values:
            rendered.append(self.render(value, suffixes, untouched))
        return rendered

    def _text(self, text: str, suffixes: Sequence[str]) -> Any:
        if suffixes and text.endswith(tuple(suffixes)):
            return self._evaluate(lambda: self.environment.get_template(text))
        if not any(marker in text for marker in _MARKERS):
            return text
        return self._evaluate(lambda: self.environment.from_string(text))

    def _evaluate(self, find: Callable[[], Any]) -> Any:
        # Most tasks have no template at all, and Jinja is the biggest import of those that do.
        from jinja2 import TemplateError, TemplateNotFound

        try:
            template = find()
            # Shared, so that Jinja reads names one by one and a context may compute them when they are asked for.
            names = template.new_context(ChainMap(self._context, template.globals), shared=True)  # type: ignore[arg-type]
            return self.environment.concat(template.root_render_func(names))
        except TemplateNotFound as error:
            raise RenderError(f"there is no template file `{error.name}`") from error
        except TemplateError as error:
            raise RenderError(f"{error.message} ({type(error).__name__})") from error

    @functools.cached_property
    def environment(self) -> Any:
        """What templates are made with."""
        options = self._options() if callable(self._options) else self._options
        settings: dict[str, Any] = {"extensions": ["jinja2.ext.do"], "cache_size": 0, **options.environment}
        environment = _environment_class(options.is_native)(**_with_loader(settings, options))
        environment.filters |= {**_DATE_FILTERS, **options.filters}
        environment.globals |= options.macros
        return environment


def _with_loader(settings: dict[str, Any], options: RenderOptions) -> dict[str, Any]:
    from jinja2 import FileSystemLoader, StrictUndefined

    defaults = {
        "loader": FileSystemLoader(list(options.search_path)),
        "undefined": options.undefined or StrictUndefined,
    }
    return defaults | settings


@functools.cache
def _environment_class(is_native: bool) -> Any:
    from jinja2.nativetypes import NativeEnvironment
    from jinja2.sandbox import SandboxedEnvironment, is_internal_attribute

    class Sandbox(SandboxedEnvironment):
        def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
            """One leading underscore is allowed, what Python keeps to itself is not."""
            return not is_internal_attribute(obj, attr)

    class NativeSandbox(Sandbox, NativeEnvironment):
        pass

    return NativeSandbox if is_native else Sandbox


def _date_filter(pattern: str) -> Callable[[datetime | None], str | None]:
    return lambda value: None if value is None else value.strftime(pattern)


_DATE_FILTERS: dict[str, Callable[[Any], str | None]] = {
    "ds": _date_filter("%Y-%m-%d"),
    "ds_nodash": _date_filter("%Y%m%d"),
    "ts": lambda value: None if value is None else value.isoformat(),
    "ts_nodash": _date_filter("%Y%m%dT%H%M%S"),
    "ts_nodash_with_tz": _date_filter("%Y%m%dT%H%M%S%z"),
}
