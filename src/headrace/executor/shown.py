"""What a result shows to people beside its values, without secrets."""

from __future__ import annotations

import msgspec

from headrace.handoff import TaskError, TaskResult
from headrace.logs import Masker


def without_secrets(result: TaskResult, masker: Masker) -> TaskResult:
    """The result with the try's secrets replaced wherever people look: in its error, rendered arguments and label."""
    if result.error is not None:
        result = msgspec.structs.replace(result, error=shown_error(result.error, masker))
    if not result.rendered and not result.label:
        return result
    rendered = {
        name: masker.replace(msgspec.json.encode(masker.hidden(msgspec.json.decode(document), name)))
        for name, document in result.rendered.items()
    }
    return msgspec.structs.replace(
        result,
        rendered={name: msgspec.Raw(document) for name, document in rendered.items()},
        label=masker.replace(result.label.encode()).decode(errors="replace"),
    )


def shown_error(error: TaskError, masker: Masker) -> TaskError:
    """An error without the secrets that its message or traceback may quote."""
    return msgspec.structs.replace(
        error, message=masker.mask_text(error.message), traceback=masker.mask_text(error.traceback)
    )
