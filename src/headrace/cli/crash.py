"""Where the traceback of a mistake of ours goes: into a file, not onto the user's screen."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import time
import traceback
from pathlib import Path


def report_crash(error: BaseException) -> Path:
    """Write what happened to a file and return its path."""
    name = f"crash-{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}.txt"
    text = "".join(traceback.format_exception(error))
    head = f"headrace {' '.join(sys.argv[1:])}\npython {platform.python_version()} on {platform.platform()}\n\n"
    home = Path(os.environ.get("HEADRACE_HOME") or "~/.headrace").expanduser()
    for folder in (home / "crashes", Path(tempfile.gettempdir())):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(head + text, encoding="utf-8", errors="backslashreplace")
            return folder / name
        except OSError:
            continue  # a full or read-only disk: the next place, or none
    return Path(os.devnull)
