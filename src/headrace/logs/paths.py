"""Where the log of a try lies. Names stay readable, and no name can lead out of the logs' folder."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote

_SAFE = "+@=,:~()[]"
_LONGEST = 180
"""File systems allow 255 bytes per name; the rest is room for suffixes."""


def log_path(
    logs_root: str | Path,
    workflow: str,
    run_key: str,
    task_key: str,
    map_index: int = -1,
    attempt_number: int = 1,
    try_number: int = 1,
    *,
    project: str = "",
) -> Path:
    """`ROOT/[PROJECT/]WORKFLOW/RUN/ATTEMPT/TASK[INDEX],try=N.log`, the same for the same try on every machine."""
    folder = log_folder(project, workflow, run_key, attempt_number)
    return Path(logs_root) / folder / log_name(task_key, map_index, try_number)


def log_folder(project: str, workflow: str, run_key: str, attempt_number: int) -> str:
    """Where an attempt's logs lie, below the logs' folder."""
    # One folder per attempt, not per task: making a folder costs more than running a small task.
    parts = [project, workflow, run_key, f"attempt={attempt_number}"]
    return "/".join(safe_name(part) for part in (parts if project else parts[1:]))


def log_name(task_key: str, map_index: int, try_number: int) -> str:
    """The name of a try's log in its attempt's folder."""
    task = task_key if map_index < 0 else f"{task_key}[{map_index}]"
    return f"{safe_name(task)},try={try_number}.log"


@lru_cache(maxsize=4096)
def safe_name(name: str) -> str:
    """One path component for any name: percent-quoted where needed, different for different names."""
    quoted = quote(name, safe=_SAFE) or "%"
    if quoted.startswith("."):
        quoted = "%2E" + quoted[1:]
    if len(quoted) > _LONGEST:
        quoted = f"{quoted[:_LONGEST]}%-{hashlib.sha256(name.encode(errors='surrogatepass')).hexdigest()[:16]}"
    return quoted
