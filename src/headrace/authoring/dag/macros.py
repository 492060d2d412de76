"""`macros` in templates: dates, and a few modules that are imported when a template first uses them."""

from __future__ import annotations

import importlib
import time
from datetime import datetime, timedelta
from typing import Any

from headrace.authoring.dag.plugin_folder import plugin_macros

_MODULES = ("dateutil", "json", "uuid", "yaml")


class Macros:
    datetime = datetime
    timedelta = timedelta
    time = time

    def random(self) -> float:
        """A number from 0 to 1."""
        # Every process that has the module reseeds it when it is forked.
        return float(importlib.import_module("random").random())

    def __getattr__(self, name: str) -> Any:
        if name not in _MODULES:
            return self._of_plugin(name)
        module = importlib.import_module(name)
        if name == "dateutil":
            for part in ("parser", "relativedelta", "tz"):
                importlib.import_module(f"dateutil.{part}")
        setattr(self, name, module)
        return module

    def _of_plugin(self, name: str) -> Any:
        found = None if name.startswith("_") else plugin_macros().get(name)
        if found is None:
            raise AttributeError(f"there is no macro `{name}`")
        setattr(self, name, found)
        return found

    @staticmethod
    def ds_add(ds: str, days: int) -> str:
        """A date (`YYYY-MM-DD`) some days later."""
        return (datetime.strptime(str(ds), "%Y-%m-%d") + timedelta(days=days)).strftime("%Y-%m-%d")

    @staticmethod
    def ds_format(ds: str, input_format: str, output_format: str) -> str:
        """A date in another format."""
        return datetime.strptime(str(ds), input_format).strftime(output_format)

    @staticmethod
    def ds_format_locale(ds: str, input_format: str, output_format: str, locale: Any = None) -> str:
        """A date in another format, in words of a language (`de_DE`)."""
        # The names of months and days in all languages are large, so only templates that want them need the package.
        try:
            from babel.dates import format_datetime, parse_pattern
        except ImportError:
            raise RuntimeError("`macros.ds_format_locale` needs the package `babel`: pip install babel") from None
        return str(
            format_datetime(
                datetime.strptime(str(ds), input_format), parse_pattern(output_format), locale=locale or "en"
            )
        )

    @staticmethod
    def datetime_diff_for_humans(dt: Any, since: Any = None) -> str:
        """`3 days ago`, or `2 hours before` another time."""
        # Only templates that use this macro pay for pendulum.
        import pendulum

        other = None if since is None else pendulum.instance(since)
        return str(pendulum.instance(dt).diff_for_humans(other))
