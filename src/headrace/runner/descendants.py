"""Whether programs that a try has started, or that these have started, are still there after it."""

from __future__ import annotations

import os

from headrace.runner.termination import prctl

_PR_SET_CHILD_SUBREAPER = 36
_is_adopting = False


def adopt_orphans() -> None:
    """From now on a descendant whose parent ends becomes a child of this process, where the system can do that."""
    global _is_adopting
    if not _is_adopting and prctl is not None:
        _is_adopting = prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


def has_descendants() -> bool:
    """Whether any of them lives, or may live for all that can be known. Those that have ended are forgotten."""
    if not _is_adopting:
        return True
    try:
        while os.waitpid(-1, os.WNOHANG)[0] != 0:
            pass
    except ChildProcessError:
        return False
    return True
