"""Looks up secrets of the project. Whatever is found is masked in the task's log from then on."""

from __future__ import annotations

from headrace.handoff import Channel, MissingError


def find_secret(channel: Channel, name: str) -> str | None:
    """The secret of this name, or None."""
    try:
        value = str(channel.ask("get_secret", name=name))
    except MissingError:
        return None
    # A key of several lines is often printed line by line.
    channel.ask("mask", values=list(dict.fromkeys([value, *value.splitlines()])))
    return value
