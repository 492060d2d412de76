"""What plug-ins of Airflow are declared with. Packages may declare them; no page and no listener of theirs is used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar


class AirflowPlugin:
    """A plug-in: views, links, listeners and the like."""

    name: str | None = None
    macros: ClassVar[list[Any]] = []
    flask_blueprints: ClassVar[list[Any]] = []
    fastapi_apps: ClassVar[list[Any]] = []
    fastapi_root_middlewares: ClassVar[list[Any]] = []
    external_views: ClassVar[list[Any]] = []
    react_apps: ClassVar[list[Any]] = []
    appbuilder_views: ClassVar[list[Any]] = []
    appbuilder_menu_items: ClassVar[list[Any]] = []
    global_operator_extra_links: ClassVar[list[Any]] = []
    operator_extra_links: ClassVar[list[Any]] = []
    timetables: ClassVar[list[Any]] = []
    listeners: ClassVar[list[Any]] = []

    @classmethod
    def on_load(cls, *args: Any, **kwargs: Any) -> None:
        """Called in Airflow when the plug-in is loaded."""


class ListenerManager:
    """Nobody listens."""

    has_listeners = False

    def add_listener(self, listener: Any) -> None:
        return None

    def clear(self) -> None:
        return None


_listeners = ListenerManager()


def get_listener_manager() -> ListenerManager:
    return _listeners


def hookimpl(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Marks a listener's function: it stays as it is."""
    return function if function is not None else hookimpl
