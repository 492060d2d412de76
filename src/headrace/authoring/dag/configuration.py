"""`conf`: Airflow's configuration as DAG files and providers read it."""

from __future__ import annotations

import enum
import importlib
import json
import os
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Generic, TypeVar

from headrace.airflow_config import AirflowOptions, default_of, known_options, read_options
from headrace.airflow_config.aliases import as_boolean
from headrace.airflow_config.reading import SENSITIVE_OPTIONS
from headrace.authoring.dag.exceptions import AirflowConfigException

T = TypeVar("T")
E = TypeVar("E", bound=enum.Enum)
_UNSET: Any = object()
PROVIDERS = "apache_airflow_provider"
"""The entry points by which providers say what they bring."""


class Configuration:
    """Options by section and key: environment, `airflow.cfg`, then the defaults of Airflow and of providers."""

    def __init__(self) -> None:
        self._read: tuple[tuple[str | None, str | None], AirflowOptions] | None = None
        self._set: dict[tuple[str, str], str] = {}
        self._provider_defaults: dict[tuple[str, str], str] | None = None
        self.find_secret: Callable[[str], str | None] = lambda name: None
        """How an option is found whose value is in a secrets backend."""

    def get(self, section: str, key: str, fallback: Any = _UNSET, **_: Any) -> Any:
        """The option's text. AirflowConfigException if nobody has set it, and it has neither default nor fallback."""
        value = self._find(section.lower(), key.lower())
        if value is not None:
            return value
        if fallback is not _UNSET:
            return fallback
        raise AirflowConfigException(f"the option `{section}.{key}` is not set")

    def getboolean(self, section: str, key: str, **options: Any) -> bool:
        text = str(self.get(section, key, **options))
        return self._converted(section, key, text, as_boolean, "true or false")

    def getint(self, section: str, key: str, **options: Any) -> Any:
        return self._number(section, key, _whole, "a whole number", options)

    def getfloat(self, section: str, key: str, **options: Any) -> Any:
        return self._number(section, key, float, "a number", options)

    def getlist(self, section: str, key: str, delimiter: str = ",", **options: Any) -> Any:
        value = self.get(section, key, **options)
        if not isinstance(value, str):
            return value
        return [item.strip() for item in value.split(delimiter)] if value else []

    def getjson(self, section: str, key: str, fallback: Any = _UNSET, **_: Any) -> Any:
        text = self.get(section, key, fallback=None if fallback is _UNSET else "")
        if not text:
            return None if fallback is _UNSET else fallback
        return self._converted(section, key, text, json.loads, "JSON")

    def gettimedelta(self, section: str, key: str, fallback: Any = None, **_: Any) -> timedelta | None:
        """A number of seconds."""
        text = self.get(section, key, fallback=fallback)
        if text is None or isinstance(text, timedelta):
            return text
        return self._converted(section, key, text, lambda one: timedelta(seconds=_whole(one)), "a number of seconds")

    def getimport(self, section: str, key: str, **options: Any) -> Any:
        """The object that a dotted path names; None if the option is empty."""
        path = self.get(section, key, **options)
        if not path:
            return None
        try:
            return import_string(path)
        except ImportError as error:
            raise AirflowConfigException(f"could not import `{path}` of `{section}.{key}`: {error}") from error

    def getenum(self, section: str, key: str, enum_class: type[E], **options: Any) -> E:
        value = self.get(section, key, **options)
        if isinstance(value, enum_class):
            return value
        return self._converted(section, key, value, lambda one: enum_class[one], " or ".join(enum_class.__members__))

    def get_mandatory_value(self, section: str, key: str, **options: Any) -> str:
        value = self.get(section, key, **options)
        if value is None:
            raise ValueError(f"the option `{section}.{key}` should be set")
        return str(value)

    def get_mandatory_list_value(self, section: str, key: str, **options: Any) -> list[str]:
        value = self.getlist(section, key, **options)
        if value is None:
            raise ValueError(f"the option `{section}.{key}` should be set")
        return list(value)

    def has_option(self, section: str, option: str, **_: Any) -> bool:
        return self._find(section.lower(), option.lower()) is not None

    def is_set(self, section: str, key: str) -> bool:
        """Whether somebody has set the option, whatever its default is."""
        return (section, key) in self._set or self._options.find(section, key) is not None

    def getsection(self, section: str) -> dict[str, Any] | None:
        """Every option of a section, with numbers and booleans as such; None if there is no such section."""
        keys = {*known_options(section), *(key for where, key in self._providers() if where == section)}
        keys |= {given.key for given in self._options.everything() if given.section == section}
        found = {key: self._find(section, key) for key in sorted(keys)}
        return {key: _typed(value) for key, value in found.items() if value is not None} or None

    def set(self, section: str, option: str, value: str) -> None:
        """For this process only."""
        self._set = {**self._set, (section.lower(), option.lower()): str(value)}

    def remove_option(self, section: str, option: str, remove_default: bool = True) -> None:
        self._set = {key: value for key, value in self._set.items() if key != (section.lower(), option.lower())}

    def sources(self, variable: str) -> tuple[Any, ...]:
        """What an option is made of that this environment variable sets: equal as long as it cannot have changed."""
        return (*map(os.environ.get, (variable, "AIRFLOW_HOME", "AIRFLOW_CONFIG")), self._set)

    def add_section(self, section: str) -> None:
        """A section is there as soon as it has an option."""

    def as_dict(self, display_sensitive: bool = False, **_: Any) -> dict[str, dict[str, str]]:
        """What was set, by section and key."""
        sections: dict[str, dict[str, str]] = {}
        for given in self._options.everything():
            is_hidden = not display_sensitive and (given.section, given.key) in SENSITIVE_OPTIONS
            sections.setdefault(given.section, {})[given.key] = "< hidden >" if is_hidden else given.value
        return sections

    @property
    def _options(self) -> AirflowOptions:
        # Tests and DAG files change the environment; only the file that it names is read once.
        places = (os.environ.get("AIRFLOW_HOME"), os.environ.get("AIRFLOW_CONFIG"))
        if self._read is None or self._read[0] != places:
            self._read = (places, read_options(os.environ))
        return self._read[1]

    def _find(self, section: str, key: str) -> str | None:
        if (section, key) in self._set:
            return self._set[section, key]
        options = self._options
        given = options.find(section, key)
        if given is not None:
            return os.path.expandvars(os.path.expanduser(given.value))
        if (name := options.secret_name(section, key)) is not None:
            return self.find_secret(name)
        default = default_of(section, key, options.home)
        return default if default is not None else self._providers().get((section, key))

    def _providers(self) -> dict[tuple[str, str], str]:
        """Defaults that installed providers bring for options of their own."""
        if self._provider_defaults is None:
            self._provider_defaults = {}
            for info in provider_infos():
                for section, described in (info.get("config") or {}).items():
                    for key, option in (described.get("options") or {}).items():
                        if option.get("default") is not None:
                            self._provider_defaults[section, key] = str(option["default"])
        return self._provider_defaults

    def _number(
        self, section: str, key: str, convert: Callable[[str], T], expected: str, options: dict[str, Any]
    ) -> T | None:
        value = self.get(section, key, **options)
        return None if value is None else self._converted(section, key, str(value), convert, expected)

    def _converted(self, section: str, key: str, text: str, convert: Callable[[str], T], expected: str) -> T:
        try:
            return convert(text)
        except (ValueError, KeyError, OverflowError):
            raise AirflowConfigException(
                f"expected the option `{section}.{key}` to be {expected}, got: `{text}`"
            ) from None


def _whole(text: str) -> int:
    """`10` and `10.0`, as Airflow takes them."""
    number = float(text)
    if number != int(number):
        raise ValueError(text)
    return int(text) if text.strip().lstrip("+-").isdigit() else int(number)


def _typed(text: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return text


def import_string(path: str) -> Any:
    """What `package.module.name` names."""
    module_name, dot, name = path.rpartition(".")
    if not dot:
        raise ImportError(f"`{path}` is no path of a module and a name in it")
    module = importlib.import_module(module_name)
    try:
        return getattr(module, name)
    except AttributeError:
        raise ImportError(f"`{module_name}` has no `{name}`") from None


def provider_infos() -> Sequence[dict[str, Any]]:
    """What the installed providers say about themselves; one that cannot say it is left out."""
    # Looking through all installed packages takes a while, so only those who ask pay even for the import.
    from importlib.metadata import entry_points

    infos = []
    for point in entry_points(group=PROVIDERS):
        try:
            infos.append(point.load()())
        except Exception:  # a broken provider must not take the others with it
            continue
    return infos


class Remembered(Generic[T]):
    """What is made of one option, found out again only when the option may have changed.

    For what every task asks: finding it out again would copy a tenth of the pages that its process copies.
    """

    def __init__(self, section: str, key: str, make: Callable[[], T]) -> None:
        self._variable = f"AIRFLOW__{section}__{key}".upper()
        self._make = make
        self._last: tuple[tuple[Any, ...], T] | None = None

    def get(self) -> T:
        sources = conf.sources(self._variable)
        if self._last is None or self._last[0] != sources:
            self._last = (sources, self._make())
        return self._last[1]


conf = Configuration()
