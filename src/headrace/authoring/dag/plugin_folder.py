"""The plugins folder of Airflow's configuration: modules that files import by their names, and macros for templates."""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from headrace.authoring.dag.configuration import conf

_log = logging.getLogger("headrace.plugins")
_PLUGIN = "AirflowPlugin"
_ENTRY_POINTS = "airflow.plugins"
_OPTION = ("core", "plugins_folder")


def put_plugins_on_path() -> None:
    """What lies in the plugins folder, and in `config` of Airflow's home, can be imported, after everything else."""
    for folder in (_folder(), _home() / "config"):
        if str(folder) not in sys.path and folder.is_dir():
            sys.path.append(str(folder))


def _folder() -> Path:
    # The table of defaults is read by nobody who does not need it.
    return Path(conf.get(*_OPTION)) if conf.is_set(*_OPTION) else _home() / "plugins"


def _home() -> Path:
    return Path(os.environ.get("AIRFLOW_HOME") or "~/airflow").expanduser()


@cache
def plugin_macros() -> dict[str, Any]:
    """The macros of plug-ins, by the plug-in's name."""
    found: dict[str, Any] = {}
    for plugin in _plugins():
        macros = {getattr(one, "__name__", ""): one for one in getattr(plugin, "macros", ())}
        if plugin.name and macros:
            found[plugin.name] = SimpleNamespace(**macros)
    return found


def _plugins() -> Iterator[Any]:
    # Every task process has this module, and few look for plug-ins.
    import importlib.metadata

    for module in _modules(_folder()):
        yield from (one for one in vars(module).values() if _is_plugin(one) and one.__module__ == module.__name__)
    for entry_point in importlib.metadata.entry_points(group=_ENTRY_POINTS):
        try:
            loaded = entry_point.load()
        except Exception as error:  # as for a file
            _log.warning("the plug-in `%s` could not be loaded: %s", entry_point.name, error)
        else:
            yield from [loaded] if _is_plugin(loaded) else []


def _modules(folder: Path) -> Iterator[ModuleType]:
    """Those files of a folder that declare plug-ins; one that cannot be loaded costs nobody else anything."""
    for path in sorted(folder.rglob("*.py")):
        try:
            if _PLUGIN.encode() in path.read_bytes():
                yield _loaded(path)
        except Exception as error:  # it is the user's code
            _log.warning("the plug-ins of `%s` could not be loaded: %s: %s", path, type(error).__name__, error)


def _loaded(path: Path) -> ModuleType:
    # Not by its plain name, which several files may have.
    name = f"headrace_plugin_{hashlib.sha256(str(path).encode()).hexdigest()[:16]}_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None, "it ends in .py"
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _is_plugin(value: Any) -> bool:
    return isinstance(value, type) and any(one.__name__ == _PLUGIN for one in value.__mro__[1:])
