"""Tracebacks cut down to the user's own files."""

from __future__ import annotations

import traceback
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[2]


def user_frames(error: BaseException, root: Path) -> list[traceback.FrameSummary]:
    """The frames in files of the project; if there are none, all frames that are not ours."""
    frames = list(traceback.extract_tb(error.__traceback__))
    own = [frame for frame in frames if Path(frame.filename).is_relative_to(root) and not _is_installed(frame, root)]
    return own or [frame for frame in frames if not _is_ours(frame)]


def user_traceback(error: BaseException, root: Path) -> str:
    """The error with the user's frames only, as Python prints it."""
    frames = user_frames(error, root)
    lines = traceback.format_exception_only(error)
    if frames and not isinstance(error, SyntaxError):
        lines = ["Traceback (most recent call last):\n", *traceback.format_list(frames), *lines]
    return "".join(lines).rstrip()


def _is_ours(frame: traceback.FrameSummary) -> bool:
    return Path(frame.filename).is_relative_to(_PACKAGE) or frame.filename.startswith("<frozen ")


def _is_installed(frame: traceback.FrameSummary, root: Path) -> bool:
    # A virtual environment inside the project's folder is not what the user wrote.
    return "site-packages" in Path(frame.filename).relative_to(root).parts or _is_ours(frame)
