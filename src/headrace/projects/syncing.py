"""Keeps the store at what the project folders say: one look at everything, then whatever changes."""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from headrace.clock import Clock, to_micros
from headrace.errors import HeadraceError, StateError, StoreError
from headrace.metrics import tick_ended, tick_failed
from headrace.projects.files import Discovery, find_files
from headrace.projects.parsing import DEFAULT_LOADER, Answers, ParsePool
from headrace.projects.saving import SavedFile, save_parsed
from headrace.projects.shared_files import MAY_READ, Looks, is_readable, looks_of_shared_files
from headrace.projects.watching import Changes, watch
from headrace.settings import ParserSettings, ProjectFolder
from headrace.store import (
    Store,
    Transaction,
    ensure_project,
    failed_files,
    file_digests,
    give_up_dead_neighbours,
    project_roots,
    refuse_other_folder,
    remove_file,
    workflows_in_force,
)

_log = logging.getLogger("headrace.projects")

_RETRY_SECONDS = 2.0
_SHOWN = 20
"""How many workflows a log line names."""
_CHECK_SECONDS = 5.0
"""How often it looks whether its projects are still its own."""


@dataclass
class _Known:
    """What this process knows to be saved of a folder."""

    folder: ProjectFolder
    digests: dict[str, str] = field(default_factory=dict)
    """Of the bytes that were last seen of each file."""
    workflows: set[str] = field(default_factory=set)
    """The project's workflows, as they were last told."""
    broken: set[str] = field(default_factory=set)
    rivals: set[str] = field(default_factory=set)
    """Broken because another file defines the same workflow."""
    looks: Looks | None = None
    """Of the files that may be read while others are loaded."""
    is_read: bool = False
    refusal: str | None = None
    """Why its project must not be saved from it, as it was last told."""

    def begin_anew(self) -> None:
        """Know nothing any more: others may have saved something else."""
        self.is_read, self.looks = False, None
        self.rivals.clear()

    def note(self, saved: SavedFile) -> None:
        self.digests[saved.file] = saved.digest
        for files, is_in in ((self.broken, saved.error is not None), (self.rivals, saved.is_rival)):
            files.discard(saved.file)
            if is_in:
                files.add(saved.file)

    def forget(self, file: str) -> None:
        self.digests.pop(file, None)
        self.broken.discard(file)
        self.rivals.discard(file)


class ProjectSync:
    """`start` and `stop` a thread of it, or call `run` in one of your own, or `scan` whenever you like.

    Any number of processes may sync the same folders.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        folders: Sequence[ProjectFolder],
        parser: ParserSettings | None = None,
        *,
        loader: str = DEFAULT_LOADER,
        answers: Answers | None = None,
    ) -> None:
        parser = parser or ParserSettings()
        self._store = store
        self._clock = clock
        self._known = [_Known(folder) for folder in folders]
        self._pool = ParsePool(
            parser.processes,
            timeout_seconds=parser.timeout_seconds,
            memory_mb=parser.memory_mb,
            loader=loader,
            answers=answers,
        )
        self._discovery = Discovery(parser.safe_mode, parser.ignore_syntax)
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to sync in a thread."""
        self._thread = threading.Thread(target=self.run, name="headrace-sync", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the sync and its parse processes."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
        self._pool.close()

    def run(self) -> None:
        """Look at everything, then follow changes until stopped, also through times when the database is away."""
        for known in self._known:
            self._insist(known, set())
        checked_at = time.monotonic()
        for changes in watch([known.folder.path for known in self._known], self._stopped, tells_quiet=True):
            self._follow(changes)
            if time.monotonic() - checked_at >= _CHECK_SECONDS:
                self.check_roots()
                checked_at = time.monotonic()
        self._pool.close()
        self._store.close()

    def check(self) -> None:
        """Raise StateError for a folder whose project must not be saved from it, before anything is saved."""
        now = to_micros(self._clock.now())
        self._store.transact(partial(give_up_dead_neighbours, now=now))
        with self._store.read() as tx:
            roots = project_roots(tx)
            for folder in (known.folder for known in self._known):
                refuse_other_folder(tx, folder.name, roots.get(folder.name, folder.root), folder.root, now)

    def check_roots(self) -> None:
        """Look at folders again whose project was deleted or saved from elsewhere, or must not be saved any more."""
        try:
            with self._store.read() as tx:
                roots = project_roots(tx)
        except StoreError as error:
            self._stopped.wait(self._store.outage.met(error, _RETRY_SECONDS))
            return
        for known in self._known:
            is_another = roots.get(known.folder.name) != known.folder.root
            if (is_another or known.refusal is not None) and known.folder.path.is_dir():
                known.begin_anew()
                self._insist(known, set())

    def scan(self) -> list[SavedFile]:
        """Look at every folder once and save what changed. Returns what was saved."""
        return [saved for known in self._known for saved in self._look(known, set())]

    def _follow(self, changes: Changes) -> None:
        """Look at all projects of the folders that changed: one folder may be several."""
        for known in self._known:
            paths = changes.get(known.folder.path)
            if paths is not None and (not paths or _concern_us(known.folder.path, paths)):
                self._insist(known, paths)

    def _insist(self, known: _Known, changed: set[str]) -> None:
        while not self._stopped.is_set():
            try:
                began = time.perf_counter()
                saved = self._look(known, changed)
                tick_ended("project sync", began, len(saved))
                self._admit(known)
                return
            except StoreError as error:
                tick_failed("project sync")
                self._stopped.wait(self._store.outage.met(error, _RETRY_SECONDS))
            except StateError as error:
                # Perhaps for long: other folders must not wait for it.
                tick_failed("project sync")
                self._refuse(known, error)
                return
            except HeadraceError as error:
                tick_failed("project sync")
                _log.warning("could not save project `%s`: %s", known.folder.name, error.message)
                self._stopped.wait(_RETRY_SECONDS)
            except Exception:
                # Our mistake; whoever serves the folder must not go on for ever without it.
                tick_failed("project sync")
                _log.exception("could not look at project `%s`", known.folder.name)
                self._stopped.wait(_RETRY_SECONDS)

    def _refuse(self, known: _Known, error: StateError) -> None:
        known.begin_anew()
        if known.refusal != error.message:
            hint = f" (hint: {error.hint})" if error.hint else ""
            _log.warning("%s%s", error.message, hint)
        known.refusal = error.message

    def _admit(self, known: _Known) -> None:
        if known.refusal is not None and known.is_read:
            known.refusal = None
            _log.info("project `%s` is saved from `%s` again", known.folder.name, known.folder.path)

    def _look(self, known: _Known, changed: set[str]) -> list[SavedFile]:
        if not known.folder.path.is_dir():
            # Perhaps it comes back: its workflows stay as they are.
            _log.warning("the folder `%s` of project `%s` is not there", known.folder.path, known.folder.name)
            return []
        if not known.is_read:
            self._read_known(known)
        found = {file: _digest(known.folder.path / file) for file in find_files(known.folder.path, self._discovery)}
        looks = looks_of_shared_files(known.folder.path, found)
        files = _to_load(known, found, looks, changed)
        # First what is gone, so that a workflow may move to a file with another name.
        gone = sorted((known.digests.keys() | known.broken) - found.keys())
        for file in gone:
            self._remove(known, file)
        saved = self._save(known, files)
        known.looks = looks
        if gone or saved:
            self._tell_of_workflows(known)
        return saved

    def _tell_of_workflows(self, known: _Known) -> None:
        with self._store.read() as tx:
            workflows = workflows_in_force(tx, known.folder.name)
        for verb, names in (("appeared", workflows - known.workflows), ("disappeared", known.workflows - workflows)):
            if names:
                _log.info("project `%s`: %s %s", known.folder.name, _listed(names), verb)
        known.workflows = workflows

    def _read_known(self, known: _Known) -> None:
        with self._store.begin() as tx:
            project_id = self._project_id(tx, known)
            known.broken = failed_files(tx, project_id)
            known.workflows = workflows_in_force(tx, known.folder.name)
            digests = file_digests(tx, project_id)
        # A broken file is loaded again: what it lacked may have come.
        known.digests = {file: digest for file, digest in digests.items() if file not in known.broken}
        known.is_read = True

    def _save(self, known: _Known, files: Sequence[str]) -> list[SavedFile]:
        if not files:
            return []
        name, root = known.folder.name, known.folder.path
        parsed = self._pool.parse(root, files)
        saved = save_parsed(self._store, name, root, parsed, self._clock.now(), may_move=False)
        for one in saved:
            if one.error is None and one.file in known.broken:
                _log.info("`%s` of project `%s` could be loaded again", one.file, name)
            known.note(one)
            if one.error is not None:
                at = f"{one.file}:{one.error.line}" if one.error.line else one.file
                hint = f" (hint: {one.error.hint})" if one.error.hint else ""
                _log.warning("could not load `%s` of project `%s`: %s%s", at, name, one.error.message, hint)
        return saved

    def _remove(self, known: _Known, file: str) -> None:
        self._store.transact(partial(self._remove_in, known=known, file=file))
        known.forget(file)

    def _remove_in(self, tx: Transaction, known: _Known, file: str) -> None:
        remove_file(tx, self._project_id(tx, known), file)
        tx.tell()

    def _project_id(self, tx: Transaction, known: _Known) -> int:
        now = to_micros(self._clock.now())
        return ensure_project(tx, known.folder.name, known.folder.root, now, may_move=not known.is_read)


def _to_load(known: _Known, found: dict[str, str], looks: Looks, changed: set[str]) -> list[str]:
    """What is to be loaded: first what changed itself, then what may read something that changed."""
    first = [
        file
        for file, digest in found.items()
        if digest != known.digests.get(file) or (file in changed and file in known.broken)
    ]
    before = looks if known.looks is None else known.looks
    other = {suffix for suffix, look in looks.items() if look != before[suffix]}
    again = known.rivals | {file for file in found if not other.isdisjoint(MAY_READ[Path(file).suffix])}
    return first + sorted((again & found.keys()) - set(first))


def _listed(names: set[str]) -> str:
    """`workflows `a` and `b``, or the first of very many."""
    shown = [f"`{name}`" for name in sorted(names)[:_SHOWN]]
    if len(names) > _SHOWN:
        shown.append(f"{len(names) - _SHOWN} more")
    if len(shown) == 1:
        return f"workflow {shown[0]}"
    return f"workflows {', '.join(shown[:-1])} and {shown[-1]}"


def _concern_us(root: Path, paths: set[str]) -> bool:
    """Whether workflows may have changed: data that tasks write into the folder is none of our business."""
    return any(
        is_readable(path) or path.endswith("ignore") or (not Path(path).suffix and not (root / path).is_file())
        for path in paths
    )


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""
