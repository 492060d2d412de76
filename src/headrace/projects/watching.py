"""Notices changes in project folders, also when a folder vanishes, comes back or is exchanged as a whole."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

Changes = dict[Path, set[str]]
"""Changed paths, relative to each project's folder. An empty set: look at the whole folder again."""

_Identity = tuple[int, int] | None
_DEBOUNCE_MILLISECONDS = 400


def watch(
    roots: Sequence[Path], stop: threading.Event, *, check_seconds: float = 1.0, tells_quiet: bool = False
) -> Iterator[Changes]:
    """Yield changes, bundled while they go on, until told to stop.

    Soon after the start, each folder comes once with an empty set: what changed before the watch stood is found then.
    With `tells_quiet`, no changes are yielded as well, at each check.
    """
    known: dict[Path, _Identity] = {}
    while not stop.is_set():
        present = {root: _identity(root) for root in roots}
        fresh: Changes = {root: set() for root in roots if root not in known or known[root] != present[root]}
        known = present
        for changes in _watch_present(known, fresh, stop, check_seconds):
            if changes or tells_quiet:
                yield changes


def _watch_present(
    known: dict[Path, _Identity], fresh: Changes, stop: threading.Event, check_seconds: float
) -> Iterator[Changes]:
    """Watch the folders that exist until the set of them changes; `fresh` ones are reported once the watch stands."""
    for paths in _raw_changes([root for root, identity in known.items() if identity], stop, check_seconds):
        changes = _by_root(paths, known)
        changes.update(fresh)
        fresh = {}
        yield changes
        if any(_identity(root) != identity for root, identity in known.items()):
            return


def _raw_changes(roots: list[Path], stop: threading.Event, check_seconds: float) -> Iterator[set[str]]:
    if not roots:
        # Nothing to watch yet; the caller looks for the folders after each item.
        while not stop.wait(check_seconds):
            yield set()
        return
    # Imported here because the parse processes import this package and never watch anything.
    import watchfiles

    try:
        for changes in watchfiles.watch(
            *roots,
            stop_event=stop,
            debounce=_DEBOUNCE_MILLISECONDS,
            rust_timeout=int(check_seconds * 1000),
            yield_on_timeout=True,
            ignore_permission_denied=True,
        ):
            yield {path for _, path in changes}
    except FileNotFoundError:
        # A folder vanished between the look and the watch.
        stop.wait(check_seconds)
        yield set()


def _by_root(paths: Iterable[str], known: Mapping[Path, _Identity]) -> Changes:
    changes: Changes = {}
    for path in map(Path, paths):
        for root, identity in known.items():
            if path != root and path.is_relative_to(root):
                # Where several paths lead to one folder, the system tells of changes below one of them only.
                for twin in (one for one in known if known[one] == identity):
                    changes.setdefault(twin, set()).add(path.relative_to(root).as_posix())
    return changes


def _identity(root: Path) -> _Identity:
    """Which folder a path leads to at the moment."""
    try:
        status = os.stat(root)
    except OSError:
        return None
    return (status.st_dev, status.st_ino)
