"""Functions of a few lines that providers take from Airflow."""

from __future__ import annotations

import getpass
import hashlib
import os
import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any, TypeVar
from urllib.parse import urlencode, urljoin

from headrace.authoring.dag.configuration import conf
from headrace.authoring.dag.exceptions import AirflowConfigException, AirflowException

T = TypeVar("T")
_KEY = re.compile(r"[\w.-]+")
_TRUE = ("on", "t", "true", "y", "yes", "1")


def prune_dict(val: Any, mode: str = "strict") -> Any:
    """Without everything that is None, at any depth; with mode `truthy`, without everything that is not true."""
    if mode not in ("strict", "truthy"):
        raise ValueError(f"expected the mode to be `strict` or `truthy`, got: {mode!r}")

    def is_kept(value: Any) -> bool:
        return value is not None if mode == "strict" else bool(value)

    if isinstance(val, dict):
        pairs = ((key, prune_dict(item, mode)) for key, item in val.items())
        return {key: item for key, item in pairs if is_kept(item)}
    if isinstance(val, list):
        return [item for item in (prune_dict(one, mode) for one in val) if is_kept(item)]
    return val


def merge_dicts(dict1: Mapping[str, Any], dict2: Mapping[str, Any]) -> dict[str, Any]:
    """A new dict in which the second wins; dicts inside are merged, too."""
    merged = dict(dict1)
    for key, value in dict2.items():
        is_nested = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = merge_dicts(merged[key], value) if is_nested else value
    return merged


def chunks(items: list[T], chunk_size: int) -> Iterator[list[T]]:
    """The list in pieces of that many elements; the last may have fewer."""
    if chunk_size <= 0:
        raise ValueError(f"expected the size of chunks to be at least 1, got: {chunk_size}")
    for start in range(0, len(items), chunk_size):
        yield items[start : start + chunk_size]


def exactly_one(*args: Any) -> bool:
    """Whether one of them is true, and only one."""
    return _true_ones(args) == 1


def at_most_one(*args: Any) -> bool:
    """Whether none or one of them is true."""
    return _true_ones(args) <= 1


def _true_ones(args: tuple[Any, ...]) -> int:
    if args and is_container(args[0]):
        raise ValueError("expected the values one by one: put a `*` before the list")
    return sum(map(bool, args))


def is_container(obj: Any) -> bool:
    """Whether it has elements; text has none."""
    return hasattr(obj, "__iter__") and not isinstance(obj, str)


def as_flattened_list(iterable: Iterable[Iterable[T]]) -> list[T]:
    """The elements of the elements."""
    return [item for items in iterable for item in items]


def convert_camel_to_snake(camel_str: str) -> str:
    """`CamelCase` as `camel_case`."""
    return re.sub(r"(?!^)([A-Z]+)", r"_\1", camel_str).lower()


def validate_key(k: str, max_length: int = 250) -> None:
    """AirflowException if it cannot be an id: letters, digits, `-`, `.` and `_`."""
    if not isinstance(k, str):
        raise TypeError(f"expected a key to be text, got: {k!r}")
    if len(k) > max_length:
        raise AirflowException(f"expected a key to have at most {max_length} characters, got {len(k)}: `{k}`")
    if not _KEY.fullmatch(k) or ".." in k:
        raise AirflowException(f"expected a key to be of letters, digits, `-`, `.` and `_`, got: `{k}`")


def to_boolean(astring: str | None) -> bool:
    """Whether the text says yes."""
    return astring is not None and astring.strip().lower() in _TRUE


def getuser() -> str:
    """The name of the user of this process."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        raise AirflowConfigException("the user of this process has no name") from None


@contextmanager
def patch_environ(new_env_variables: Mapping[str, str]) -> Iterator[None]:
    """The environment with these variables, for a `with` block."""
    before: MutableMapping[str, str] = dict(os.environ)
    os.environ.update(new_env_variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def md5(string: bytes = b"", /) -> Any:
    """A checksum, not for security."""
    return hashlib.md5(string, usedforsecurity=False)


def qualname(o: Any, use_qualname: bool = False, exclude_module: bool = False) -> str:
    """The path of a class or function, or of an object's class."""
    kind = o if callable(o) and hasattr(o, "__name__") else type(o)
    name = kind.__qualname__ if use_qualname else kind.__name__
    return name if exclude_module else f"{kind.__module__}.{name}"


def iter_namespace(ns: ModuleType) -> Iterator[Any]:
    """The modules below a package."""
    return pkgutil.iter_modules(ns.__path__, f"{ns.__name__}.")


def is_valid_dotpath(path: Any) -> bool:
    """Whether it is names with dots between them."""
    return isinstance(path, str) and all(part.isidentifier() for part in path.split("."))


def context_merge(context: MutableMapping[str, Any], *args: Any, **kwargs: Any) -> None:
    """Add to the context."""
    context.update(*args, **kwargs)


def build_airflow_dagrun_url(dag_id: str, run_id: str) -> str:
    """Where a run is shown, below the option `api.base_url`."""
    return urljoin(f"{conf.get('api', 'base_url', fallback='/').rstrip('/')}/", f"dags/{dag_id}/runs/{run_id}")


def build_airflow_url_with_query(query: Mapping[str, Any]) -> str:
    """The overview of DAGs, filtered."""
    return f"{conf.get('api', 'base_url', fallback='/').rstrip('/')}/dags?{urlencode(query)}"


def provide_session(func: Callable[..., Any]) -> Callable[..., Any]:
    """The function as it is: tasks have no way to the database, so there is no session to provide."""
    return func


NEW_SESSION: Any = None
