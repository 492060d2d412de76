"""The import hook: makes the modules of the table of paths, and explains what is missing from it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from headrace.compat.airflow.installed import find_example_module, find_installed, not_installed
from headrace.compat.airflow.moved import advice_about
from headrace.compat.airflow.paths import PATHS
from headrace.errors import nearest

_OF_PROVIDERS = "airflow.providers."
_OF_EXAMPLES = "airflow.example_dags."
_STANDARD = "airflow.providers.standard."


class _TableModule(ModuleType):
    """A module whose names are looked up in the table when they are first used."""

    def __getattr__(self, name: str) -> Any:
        target = PATHS[self.__name__].get(name)
        if target is None and f"{self.__name__}.{name}" in PATHS:
            # `import airflow`, and then `airflow.utils.dates`: there, packages import what is in them.
            return importlib.import_module(f"{self.__name__}.{name}")
        if target is None:
            raise AttributeError(_missing(self.__name__, name))
        module_name, attribute = target.split(":")
        value = getattr(importlib.import_module(module_name), attribute)
        setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *PATHS[self.__name__]]


class _Finder:
    """Finds and loads. Without Python's abstract classes for both, which bring archives and temporary files along."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "airflow" and not fullname.startswith("airflow."):
            return None
        if fullname.startswith(_OF_PROVIDERS) and not _is_ours(fullname):
            installed = find_installed(fullname)
            if installed is not None:
                return installed
        if fullname.startswith(_OF_EXAMPLES):
            found = find_example_module(fullname, path)
            if found is not None:
                return found
        if fullname in PATHS:
            # A package, so that Python comes back here for `from module import name` with an unknown name.
            return ModuleSpec(fullname, self, origin="headrace", is_package=True)  # type: ignore[arg-type]
        if fullname.startswith(_OF_PROVIDERS):
            raise ModuleNotFoundError(_missing_provider(_wanted(fullname)))
        # Without a name in it: Python would replace the text of an error that names the module it looked for.
        raise ModuleNotFoundError(_missing(*fullname.rsplit(".", 1)))

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _TableModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        names = PATHS[module.__name__]
        if names:
            module.__all__ = sorted(names)  # type: ignore[attr-defined]


def _missing(module: str, name: str) -> str:
    known = [*PATHS.get(module, {}), *_children(module)]
    elsewhere = [path for path, names in PATHS.items() if name in names]
    moved = advice_about(f"{module}.{name}")
    if moved is not None:
        advice = moved
    elif elsewhere:
        advice = f"it is in `{elsewhere[0]}`"
    elif match := nearest(name, known):
        advice = f"the nearest known name is `{match}`"
    else:
        advice = "Headrace has no such name"
    return f"cannot import `{name}` from `{module}`: {advice}"


def _missing_provider(path: str) -> str:
    return _missing(*path.rsplit(".", 1)) if path.startswith(_STANDARD) else not_installed(path)


def _is_ours(path: str) -> bool:
    """Whether the table wins over an installed package: our own operators take the place of `standard`'s."""
    return path in PATHS and f"{path}.".startswith(_STANDARD)


def _wanted(fullname: str) -> str:
    """The whole path that was asked for: Python looks for a module's packages first, from the outermost."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        frame = frame.f_back
        name = frame.f_locals.get("name") if "importlib" in frame.f_code.co_filename else None
        if isinstance(name, str) and name.startswith(f"{fullname}."):
            fullname = name
        elif frame.f_code.co_filename != __file__ and "importlib" not in frame.f_code.co_filename:
            break
    return fullname


def _children(module: str) -> list[str]:
    prefix = f"{module}."
    return [path.removeprefix(prefix) for path in PATHS if path.startswith(prefix) and "." not in path[len(prefix) :]]


_finder = _Finder()


def install() -> None:
    """Serve `airflow.*` in this process from now on, even if a real Airflow is installed.

    ImportError if the real one has been imported here already: classes of both would be mixed up.
    """
    loaded = sys.modules.get("airflow")
    if loaded is not None and not isinstance(loaded, _TableModule):
        raise ImportError(
            f"Airflow itself has been imported in this process, from `{_place(loaded)}`, before Headrace could take its"
            " place; have your files loaded by `headrace`, in an environment of their own"
        )
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


def _place(module: ModuleType) -> str:
    return module.__file__ or ", ".join(module.__path__)
