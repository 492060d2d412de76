"""A module of a `py>` task that does nothing, for rehearsals. Forgets itself, so that each of them imports it anew."""

from __future__ import annotations

import sys


def nothing() -> None:
    del sys.modules[__name__]
