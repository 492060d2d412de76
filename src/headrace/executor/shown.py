"""What a result shows to people beside its values, without secrets."""

from __future__ import annotations

from typing import Any

import msgspec

from headrace.handoff import TaskResult
from headrace.logs import Masker, is_sensitive

_HIDDEN = "***"


def without_secrets(result: TaskResult, masker: Masker) -> TaskResult:
    """The result with the try's secrets replaced wherever people look: in rendered arguments and in its label."""
    if not result.rendered and not result.label:
        return result
    rendered = {name: _hidden(msgspec.json.decode(document), name) for name, document in result.rendered.items()}
    return msgspec.structs.replace(
        result,
        rendered={name: msgspec.Raw(masker.replace(msgspec.json.encode(one))) for name, one in rendered.items()},
        label=masker.replace(result.label.encode()).decode(errors="replace"),
    )


def _hidden(value: Any, name: str) -> Any:
    """The value without what is a secret by its name."""
    if isinstance(value, dict):
        return {key: _hidden(item, name if is_sensitive(name) else key) for key, item in value.items()}
    if isinstance(value, list):
        return [_hidden(item, name) for item in value]
    return _HIDDEN if isinstance(value, str) and is_sensitive(name) else value
