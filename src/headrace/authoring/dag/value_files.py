"""Variables and connections out of files, as `airflow variables import` and the local file backend read them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from headrace.authoring.dag.connection_forms import checked_fields, fields_of_text
from headrace.authoring.dag.exceptions import AirflowException


def read_variables(path: Path) -> dict[str, tuple[str, str | None]]:
    """Value and description of each variable in a JSON, YAML or `.env` file. A value that is no text becomes JSON."""
    found: dict[str, tuple[str, str | None]] = {}
    for name, given in _entries(path).items():
        description = None
        if isinstance(given, dict) and "value" in given and set(given) <= {"value", "description"}:
            given, description = given["value"], given.get("description")
        found[name] = (given if isinstance(given, str) else json.dumps(given), description)
    return found


def read_connections(path: Path) -> dict[str, dict[str, Any]]:
    """The fields of each connection in a JSON, YAML or `.env` file, given as an object or as a URI."""
    found = {}
    for name, given in _entries(path).items():
        if isinstance(given, list) and len(given) == 1:
            (given,) = given
        if isinstance(given, str):
            found[name] = fields_of_text(given)
        elif isinstance(given, dict):
            found[name] = checked_fields({_FIELD_NAMES.get(str(key), str(key)): one for key, one in given.items()})
        else:
            raise AirflowException(f"expected connection `{name}` of `{path}` to be an object or a URI")
    return found


_FIELD_NAMES = {"extra_dejson": "extra"}


def _entries(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise AirflowException(f"could not read `{path}`: {reason}") from None
    if path.suffix == ".env":
        return dict(_assignments(text, path))
    # Every task process has this module, and hardly any of them reads such a file.
    import yaml

    try:
        content = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    except (ValueError, yaml.YAMLError) as error:
        raise AirflowException(f"could not read `{path}`: {error}") from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise AirflowException(f"expected `{path}` to hold names and values, got: {type(content).__name__}")
    return {str(name): value for name, value in content.items()}


def _assignments(text: str, path: Path) -> list[tuple[str, str]]:
    pairs = []
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if stripped and not stripped.startswith("#"):
            name, equals, value = stripped.partition("=")
            if not equals:
                raise AirflowException(f"expected `NAME=VALUE` in line {number} of `{path}`")
            pairs.append((name.strip(), value.strip()))
    return pairs
