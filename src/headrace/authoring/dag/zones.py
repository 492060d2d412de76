"""The names of time zones."""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo


def timezone_name(zone: tzinfo) -> str:
    """The IANA name of a time zone, or that of one with the same fixed offset, or the offset as `+05:30`."""
    name = getattr(zone, "key", None) or getattr(zone, "zone", None)
    if isinstance(name, str):
        return name
    offset = zone.utcoffset(datetime(2000, 1, 1)) or timedelta(0)
    if not offset:
        return "UTC"
    hours, rest = divmod(offset, timedelta(hours=1))
    if not rest:
        # In this family of names the sign says how far Greenwich is ahead.
        return f"Etc/GMT{-hours:+d}"
    minutes = abs(offset) // timedelta(minutes=1)
    return f"{'-' if offset < timedelta(0) else '+'}{minutes // 60:02}:{minutes % 60:02}"
