"""The `_secrets` of a task: under which names its secrets are looked up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.handoff import Channel


class SecretScope:
    """A channel that looks secrets up under the names that `_secrets` gives them.

    With `{pg: reports, mysql: {password: root.password}}`, `pg.user` is found as `reports.user` and `mysql.password` as
    `root.password`; every other name stays itself. A value of true means the same name.
    """

    def __init__(self, channel: Channel, names: Mapping[str, Any]) -> None:
        self._channel = channel
        self._names = names

    def ask(self, verb: str, **args: Any) -> Any:
        if verb == "get_secret":
            args["name"] = renamed(args["name"], self._names)
        return self._channel.ask(verb, **args)


def renamed(name: str, names: Mapping[str, Any]) -> str:
    """Another name for a secret, or the same one."""
    found: Any = names
    parts = name.split(".")
    for position, part in enumerate(parts):
        found = found.get(part) if isinstance(found, Mapping) else None
        if isinstance(found, str):
            return ".".join([found, *parts[position + 1 :]])
    return name
