"""Where the log of a try lies. Names stay readable, and no name can lead out of the logs' folder."""

from __future__ import annotations

import hashlib
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
    task = task_key if map_index < 0 else f"{task_key}[{map_index}]"
    folders = [workflow, run_key, f"attempt={attempt_number}"]
    if project:
        folders.insert(0, project)
    # One folder per attempt, not per task: making a folder costs more than running a small task.
    return Path(logs_root).joinpath(*map(safe_name, folders), f"{safe_name(task)},try={try_number}.log")


def safe_name(name: str) -> str:
    """One path component for any name: percent-quoted where needed, different for different names."""
    quoted = quote(name, safe=_SAFE) or "%"
    if quoted.startswith("."):
        quoted = "%2E" + quoted[1:]
    if len(quoted) > _LONGEST:
        quoted = f"{quoted[:_LONGEST]}%-{hashlib.sha256(name.encode(errors='surrogatepass')).hexdigest()[:16]}"
    return quoted
