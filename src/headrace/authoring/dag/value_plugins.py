"""Results of classes from other libraries: numpy's numbers, pandas' tables, time zones, and what plug-ins add.

A plug-in is an entry point of the group `headrace.serializers`. Its name is the class's full name, and it loads an
object with `dump(value)`, which gives JSON values, and `load(data)`, which gives the value back.
"""

from __future__ import annotations

import base64
import importlib
import io
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

GROUP = "headrace.serializers"


class Serializer(NamedTuple):
    dump: Callable[[Any], Any]
    load: Callable[[Any], Any]


def serializer_of(value: Any) -> tuple[str, Serializer] | None:
    """The name under which a value of this class, or of one above it, is stored, and how."""
    for cls in type(value).__mro__:
        name = full_name(cls)
        found = serializer_named(name)
        if found is not None:
            return name, found
    return None


def serializer_named(name: str) -> Serializer | None:
    return _BUILT_IN.get(name) or _plugins().get(name)


def full_name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


@cache
def _plugins() -> dict[str, Serializer]:
    # Looked for only when a result is of a class that nobody here knows.
    from importlib.metadata import entry_points

    found = {}
    for point in entry_points(group=GROUP):
        plugin = point.load()
        found[point.name] = Serializer(plugin.dump, plugin.load)
    return found


def _load_zone(name: str) -> Any:
    from zoneinfo import ZoneInfo

    return ZoneInfo(name)


def _load_pendulum_zone(name: Any) -> Any:
    import pendulum

    return pendulum.timezone(name)


def _dump_frame(frame: Any) -> str:
    buffer = io.BytesIO()
    frame.to_parquet(buffer)
    return base64.b64encode(buffer.getvalue()).decode()


def _load_frame(text: str) -> Any:
    return importlib.import_module("pandas").read_parquet(io.BytesIO(base64.b64decode(text)))


def _dump_array(array: Any) -> dict[str, Any]:
    return {"dtype": str(array.dtype), "data": array.tolist()}


def _load_array(stored: dict[str, Any]) -> Any:
    return importlib.import_module("numpy").array(stored["data"], dtype=stored["dtype"])


def _same(value: Any) -> Any:
    return value


_BUILT_IN = {
    "zoneinfo.ZoneInfo": Serializer(lambda zone: zone.key, _load_zone),
    "pendulum.tz.timezone.Timezone": Serializer(lambda zone: zone.name, _load_pendulum_zone),
    "pendulum.tz.timezone.FixedTimezone": Serializer(lambda zone: zone.offset, _load_pendulum_zone),
    "numpy.bool": Serializer(bool, _same),
    "numpy.bool_": Serializer(bool, _same),
    "numpy.integer": Serializer(int, _same),
    "numpy.floating": Serializer(float, _same),
    "numpy.ndarray": Serializer(_dump_array, _load_array),
    "pandas.DataFrame": Serializer(_dump_frame, _load_frame),
    "pandas.core.frame.DataFrame": Serializer(_dump_frame, _load_frame),
}
