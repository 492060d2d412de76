from __future__ import annotations

import shutil
import threading

import pytest

from headrace.projects import watch


@pytest.fixture
def start():
    stop = threading.Event()
    # A change that never comes ends the watch, and with it the test.
    patience = threading.Timer(15, stop.set)
    patience.start()
    watches = []

    def start(*roots):
        watches.append(watch(roots, stop, check_seconds=0.05))
        return watches[-1]

    yield start
    patience.cancel()
    stop.set()
    for changes in watches:
        assert list(changes) == []


def until(changes, root, path):
    """Read changes until one names the path."""
    return next(change for change in changes if path in change.get(root, ()))


def until_whole(changes, root):
    """Read changes until one says to look at the whole folder."""
    return next(change for change in changes if change.get(root) == set())


def test_every_folder_comes_first_as_a_whole(start, tmp_path):
    roots = [tmp_path / "one", tmp_path / "two"]
    for root in roots:
        root.mkdir()
    assert next(start(*roots)) == {roots[0]: set(), roots[1]: set()}


def test_changed_files_are_named_by_project(start, tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    (one / "sub").mkdir(parents=True)
    two.mkdir()
    changes = start(one, two)
    next(changes)
    (one / "sub" / "a.py").write_text("x")
    found = until(changes, one, "sub/a.py")
    assert two not in found
    (two / "b.dig").write_text("x")
    until(changes, two, "b.dig")
    (two / "b.dig").unlink()
    until(changes, two, "b.dig")


def test_changes_of_a_folder_are_told_for_each_path_that_leads_to_it(start, tmp_path):
    real, link, other = tmp_path / "real", tmp_path / "link", tmp_path / "other"
    real.mkdir()
    link.symlink_to(real)
    other.mkdir()
    changes = start(real, link, other)
    next(changes)
    (real / "a.py").write_text("x")
    assert until(changes, real, "a.py") == {real: {"a.py"}, link: {"a.py"}}


def test_folder_may_appear_vanish_and_come_back(start, tmp_path):
    root = tmp_path / "later"
    changes = start(root)
    assert next(changes) == {root: set()}
    root.mkdir()
    until_whole(changes, root)
    (root / "a.py").write_text("x")
    until(changes, root, "a.py")
    shutil.rmtree(root)
    until_whole(changes, root)
    root.mkdir()
    until_whole(changes, root)
    (root / "b.py").write_text("x")
    until(changes, root, "b.py")


def test_folder_behind_a_link_may_be_exchanged(start, tmp_path):
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
    root = tmp_path / "current"
    root.symlink_to("old")
    changes = start(root)
    next(changes)
    (tmp_path / "next").symlink_to("new")
    (tmp_path / "next").rename(root)
    until_whole(changes, root)
    (tmp_path / "new" / "a.py").write_text("x")
    until(changes, root, "a.py")


def test_compiled_files_are_no_changes(start, tmp_path):
    changes = start(tmp_path)
    next(changes)
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "a.pyc").write_text("x")
    (tmp_path / "a.py").write_text("x")
    seen = until(changes, tmp_path, "a.py")
    assert not any("pyc" in path for path in seen[tmp_path])
