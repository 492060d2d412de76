"""What workflows and tasks may be called."""

from __future__ import annotations

import re

from headrace.definition import Place
from headrace.errors import DefinitionError

MAX_NAME = 255
_TASK = re.compile(r"\+[A-Za-z0-9_\-=\[\]{}%&@,.`]*")
_LOWER_TASK = re.compile(r"[+^][A-Za-z0-9_\-=\[\]{}%&@,.`^]*")
_ALLOWED = "letters, digits and _ - = [ ] { } % & @ , . `"


def check_task_name(name: str, place: Place, *, is_at_top: bool) -> None:
    """Refuse a task name that is too long or has characters that task names cannot have; only those at the top of a
    file cannot have a `^`."""
    if len(name) > MAX_NAME:
        raise _error(f"the task name `{name[:40]}…` is {len(name)} characters long, at most {MAX_NAME} fit", place)
    if (_TASK if is_at_top else _LOWER_TASK).fullmatch(name) is None:
        raise _error(f"expected the name of task `{name}` to be `+` and then {_ALLOWED}", place)


def check_workflow_name(name: str, place: Place) -> None:
    """Refuse a workflow name, which is the file's name, that would be ambiguous in commands and URLs."""
    if not name or name[0].isdigit() or name[0] in '+^@/\\:*?"<>|':
        raise _error(f"expected the name of workflow `{name}` to begin with a letter", place)
    if name.endswith(".dig"):
        raise _error(f"the name of workflow `{name}` must not end in `.dig`", place)
    if len(name) > MAX_NAME:
        raise _error(f"the workflow name is {len(name)} characters long, at most {MAX_NAME} fit", place)


def _error(message: str, place: Place) -> DefinitionError:
    return DefinitionError(message, file=place.file or None, line=place.line)
