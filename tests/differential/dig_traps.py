"""Workflows written by hand: those of `digdag/by_hand.yaml`, and tables of expressions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent / "digdag"

PARAMS = {
    "traps_params-are-lowest": {"a": "given", "b": "given"},
    "traps_built-ins-win-over-params": {"session_date": "given", "a": "${session_date}"},
}
"""The parameters of runs that have some."""


def traps() -> Iterator[dict[str, Any]]:
    """The projects: `id`, `files` and perhaps `params` and `resumed`."""
    tables = {f"expressions_{name}": _table(lines) for name, lines in _read("expressions.yaml").items()}
    for name, text in (_read("by_hand.yaml") | tables).items():
        files = text if isinstance(text, dict) else {f"{name}.dig": text}
        project = {"id": name, "files": files}
        if name in PARAMS:
            project["params"] = PARAMS[name]
        if name.startswith("resumed_"):
            project["resumed"] = True
        yield project


def _read(name: str) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((FOLDER / name).read_text())
    return content


def _table(expressions: list[str]) -> str:
    tasks = {f"+e{index}": {"work>": "ok", "v": line} for index, line in enumerate(expressions)}
    exports = {"p": "text", "m": {"x": 1, "deep": {"y": "z"}}, "l": ["one", 2]}
    return yaml.safe_dump({"_parallel": True, "_export": exports, **tasks}, sort_keys=False, width=200)
