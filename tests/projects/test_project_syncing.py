"""Real files on disk, followed by a sync: whatever is done to them, the store says the same soon after."""

from __future__ import annotations

import os
import textwrap
import threading
import time
import zipfile

import pytest
from sqlalchemy import select

from headrace.clock import SystemClock, to_micros
from headrace.errors import StateError
from headrace.projects.syncing import ProjectSync
from headrace.settings import ParserSettings, ProjectFolder
from headrace.store import Store, delete_project, find_project, register, resign
from headrace.store import schema as tables

# A language of its own: the file is executed and leaves its workflows' names and operator in globals.
TOY_LOADER = """
from types import SimpleNamespace
from headrace.definition import Node, Schedule, Workflow

def load(root, file, content):
    path = root / file
    names, operator, loaded = [], "work", (root / "loaded").open("a")
    print(file, file=loaded, flush=True)
    namespace = {"root": root}
    exec(compile(content, str(path), "exec"), namespace)
    nodes = (Node(key="", kind="group"), Node(key="a", parent="", operator=namespace.get("operator", "work")))
    schedule = Schedule(type="cron", spec={"expression": "0 * * * *"})
    return SimpleNamespace(
        workflows=[Workflow(name=n, language="python", nodes=nodes, schedule=schedule) for n in namespace["names"]]
    )
"""
HEADER = "# a headrace dag\n"


class Project:
    """A folder of files and a store that follows it."""

    def __init__(self, root, url):
        self.root = root
        self.store = Store(url)
        self.syncs = []

    def write(self, file, code, header=HEADER):
        path = self.root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(header + textwrap.dedent(code))

    def sync(self, *others):
        """A sync as a process that has just started."""
        folders = [ProjectFolder("p", self.root), *others]
        sync = ProjectSync(self.store, SystemClock(), folders, ParserSettings(processes=1), loader="toy:load")
        self.syncs.append(sync)
        return sync

    def serve(self, root):
        """Announce a process that serves the project from a folder."""
        with self.store.begin() as tx:
            return register(
                tx, kind="scheduler", name="s-1", place="elsewhere", pid=1, slots=0, queues=(), now=self.now(),
                lease_micros=3_600_000_000, projects={"p": str(root)},
            )  # fmt: skip

    def delete(self):
        with self.store.begin() as tx:
            delete_project(tx, find_project(tx, "p").id, self.now())

    def leave(self, scheduler_id):
        with self.store.begin() as tx:
            resign(tx, scheduler_id, self.now())

    def now(self):
        return to_micros(SystemClock().now())

    def loaded(self):
        """The files that were loaded since the last question."""
        log = self.root / "loaded"
        files = sorted(log.read_text().split()) if log.exists() else []
        log.write_text("")
        return files

    def workflows(self):
        """Names of the workflows in force."""
        with self.store.read() as tx:
            rows = tx.execute(select(tables.workflow.c.name).where(~tables.workflow.c.is_gone))
            return sorted(row.name for row in rows)

    def operator(self, name):
        table = tables.workflow_version
        joined = select(table.c.definition).join(tables.workflow, tables.workflow.c.current_version_id == table.c.id)
        with self.store.read() as tx:
            definition = tx.execute(joined.where(tables.workflow.c.name == name)).scalar_one()
        return definition.split('"operator":"')[1].split('"')[0]

    def errors(self):
        with self.store.read() as tx:
            return {row.file: row.message for row in tx.execute(select(tables.source_error))}

    def eventually(self, condition):
        """Whether something becomes true, looked at whenever the store announces a change."""
        changed = threading.Event()
        self.store.wakeups.subscribe(changed.set)
        until = time.monotonic() + 60
        while time.monotonic() < until:
            if condition():
                return True
            changed.wait(0.2)
            changed.clear()
        return False

    def close(self):
        for sync in self.syncs:
            sync.stop()
        self.store.dispose()


@pytest.fixture
def project(prepared_url, tmp_path, monkeypatch):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "toy.py").write_text(TOY_LOADER)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "lib"), prepend=os.pathsep)
    (tmp_path / "files").mkdir()
    project = Project(tmp_path / "files", prepared_url)
    yield project
    project.close()


def test_only_files_whose_bytes_changed_are_loaded_by_a_later_process(project):
    project.write("a.py", "names = ['a']")
    project.write("sub/b.py", "names = ['b']")
    assert {one.file for one in project.sync().scan()} == {"a.py", "sub/b.py"}
    assert project.workflows() == ["a", "b"]
    assert project.loaded() == ["a.py", "sub/b.py"]
    project.write("sub/b.py", "names = ['b', 'c']")
    project.sync().scan()
    assert project.loaded() == ["sub/b.py"]
    assert project.workflows() == ["a", "b", "c"]


def test_removed_file_takes_its_workflows_along_and_brings_them_back(project):
    project.write("a.py", "names = ['a']")
    project.write("b.py", "names = ['b']")
    project.sync().scan()
    (project.root / "a.py").unlink()
    sync = project.sync()
    sync.scan()
    assert project.workflows() == ["b"]
    project.write("a.py", "names = ['a']")
    project.sync().scan()
    assert project.workflows() == ["a", "b"]


def test_broken_file_is_loaded_again_by_the_next_process_also_if_its_bytes_are_good_again(project):
    project.write("a.py", "names = ['a']")
    project.sync().scan()
    project.write("a.py", "names = [1 / 0]")
    project.sync().scan()
    assert "ZeroDivisionError" in project.errors()["a.py"]
    assert project.workflows() == ["a"]
    project.write("a.py", "names = ['a']")
    project.sync().scan()
    assert project.errors() == {}


@pytest.fixture
def told(caplog):
    """What the log says of a project, by level; a question takes it away."""
    caplog.set_level("INFO", logger="headrace.projects")

    def told(level="INFO"):
        lines = [record.getMessage() for record in caplog.records if record.levelname == level]
        caplog.clear()
        return lines

    return told


def test_log_tells_which_workflows_appear_and_disappear(project, told):
    project.write("a.py", "names = ['a', 'b']")
    sync = project.sync()
    sync.scan()
    assert told() == ["project `p`: workflows `a` and `b` appeared"]
    project.write("a.py", "names = ['b']\noperator = 'better'")
    sync.scan()
    assert told() == ["project `p`: workflow `a` disappeared"]
    (project.root / "a.py").rename(project.root / "z.py")
    sync.scan()
    project.sync().scan()
    assert told() == []
    (project.root / "z.py").unlink()
    project.write("many.py", "names = [f'w{number:02}' for number in range(30)]")
    project.sync().scan()
    appeared, disappeared = told()
    assert appeared.startswith("project `p`: workflows `w00`, `w01`, ")
    assert appeared.endswith("`w19` and 10 more appeared")
    assert disappeared == "project `p`: workflow `b` disappeared"


def test_log_tells_that_a_broken_file_could_be_loaded_again(project, told):
    project.write("a.py", "names = ['a']")
    sync = project.sync()
    sync.scan()
    project.write("a.py", "names = [1 / 0]")
    sync.scan()
    (warning,) = told("WARNING")
    assert warning.startswith("could not load `a.py:2` of project `p`: ")
    project.write("a.py", "names = ['a']")
    project.sync().scan()
    assert told() == ["`a.py` of project `p` could be loaded again"]
    project.sync().scan()
    assert told() == []


def test_removed_broken_file_is_forgotten(project):
    project.write("a.py", "names = [1 / 0]")
    project.sync().scan()
    (project.root / "a.py").unlink()
    project.sync().scan()
    assert project.errors() == {}


def test_renamed_file_keeps_its_workflow(project):
    project.write("a.py", "names = ['a']")
    sync = project.sync()
    sync.scan()
    (project.root / "a.py").rename(project.root / "z.py")
    sync.scan()
    assert (project.workflows(), project.errors()) == (["a"], {})


def test_rival_is_saved_once_the_other_file_is_gone(project):
    project.write("a.py", "names = ['same']")
    sync = project.sync()
    sync.scan()
    project.write("b.py", "names = ['same']\noperator = 'other'")
    sync.scan()
    assert "defined twice" in project.errors()["b.py"]
    (project.root / "a.py").unlink()
    sync.scan()
    assert (project.workflows(), project.errors()) == (["same"], {})
    assert project.operator("same") == "other"


def test_folder_that_is_not_there_changes_nothing(project):
    project.write("a.py", "names = ['a']")
    project.sync().scan()
    project.root.rename(project.root.with_name("elsewhere"))
    assert project.sync().scan() == []
    assert project.workflows() == ["a"]
    project.root.with_name("elsewhere").rename(project.root)


@pytest.fixture
def copy(project):
    """A second folder that somebody serves as the same project: it defines `b`, the first one `a`."""
    project.write("a.py", "names = ['a']")
    root = project.root.with_name("copy")
    root.mkdir()
    other = Project(root, project.store.database.url)
    other.write("b.py", "names = ['b']")
    yield other
    other.close()


def test_folder_does_not_take_over_what_is_served_from_another_one(project, copy):
    project.sync().scan()
    scheduler_id = project.serve(project.root)
    newcomer = copy.sync()
    for attempt in (newcomer.check, newcomer.scan):
        with pytest.raises(StateError, match=f"serves it from `{project.root}`") as caught:
            attempt()
        assert "--projects NAME=PATH" in caught.value.hint
    assert project.workflows() == ["a"]
    project.sync().check()
    project.leave(scheduler_id)
    newcomer.check()
    newcomer.scan()
    assert project.workflows() == ["b"]


def test_folder_that_lost_its_project_says_so_once_and_comes_back_as_a_whole(project, copy, caplog):
    first = project.sync()
    first.scan()
    copy.sync().scan()
    scheduler_id = project.serve(copy.root)
    for _ in range(3):
        first.check_roots()
    (warning,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert f"serves it from `{copy.root}`" in warning and "hint: " in warning
    project.write("a.py", "names = ['a', 'c']")
    first.check_roots()
    assert project.workflows() == ["b"]
    project.leave(scheduler_id)
    first.check_roots()
    assert project.workflows() == ["a", "c"]


def test_project_whose_folder_is_served_is_not_deleted(project):
    project.write("a.py", "names = ['a']")
    project.sync().scan()
    scheduler_id = project.serve(project.root)
    with pytest.raises(StateError, match=f"cannot be deleted: .* serves it from `{project.root}`") as caught:
        project.delete()
    assert "stop that server first" in caught.value.hint
    assert project.workflows() == ["a"]
    project.leave(scheduler_id)
    project.delete()
    assert project.workflows() == []


def test_project_that_somebody_would_save_from_another_folder_can_be_deleted(project, copy):
    project.sync().scan()
    project.serve(copy.root)
    project.delete()
    assert project.workflows() == []


def test_folder_whose_project_was_deleted_while_it_was_silent_is_saved_as_a_whole(project):
    project.write("a.py", "names = ['a']")
    project.write("b.py", "names = ['b']")
    sync = project.sync()
    sync.scan()
    project.delete()
    sync.check_roots()
    assert project.workflows() == ["a", "b"]


def test_what_a_sync_knows_does_not_outlive_a_move(project, copy):
    first = project.sync()
    first.scan()
    copy.sync().scan()
    project.write("c.py", "names = ['c']")
    with pytest.raises(StateError, match="meanwhile"):
        first.scan()
    first.check_roots()
    assert project.workflows() == ["a", "c"]


def test_folder_whose_project_is_served_from_another_one_does_not_hold_up_the_rest(project, copy):
    project.sync().scan()
    project.serve(project.root)
    more = project.root.with_name("more")
    more.mkdir()
    (more / "m.py").write_text(HEADER + "names = ['m']")
    copy.sync(ProjectFolder("more", more)).start()
    assert project.eventually(lambda: project.workflows() == ["a", "m"])


def test_running_sync_follows_what_happens_to_the_files(project):
    project.write("a.py", "names = ['a']")
    project.sync().start()
    assert project.eventually(lambda: project.workflows() == ["a"])
    project.write("a.py", "names = ['a']\noperator = 'better'")
    assert project.eventually(lambda: project.operator("a") == "better")
    project.write("new/b.py", "names = ['b']")
    assert project.eventually(lambda: project.workflows() == ["a", "b"])
    (project.root / "a.py").unlink()
    assert project.eventually(lambda: project.workflows() == ["b"])


def test_folder_that_is_two_projects_is_followed_as_both(project):
    project.write("a.py", "names = ['a']")
    project.sync(ProjectFolder("q", project.root)).start()
    assert project.eventually(lambda: project.workflows() == ["a", "a"])
    project.write("a.py", "names = ['b']")
    assert project.eventually(lambda: project.workflows() == ["b", "b"])


def test_files_that_may_import_a_changed_module_are_loaded_again(project):
    project.write("names_of.py", "LIST = ['a']", header="")
    code = "exec((root / 'names_of.py').read_text())\nnames = LIST"
    project.write("a.py", code)
    project.sync().start()
    assert project.eventually(lambda: project.workflows() == ["a"])
    project.write("names_of.py", "LIST = ['b']", header="")
    assert project.eventually(lambda: project.workflows() == ["b"])


def test_real_front_ends_are_used_without_a_loader_of_ones_own(project):
    project.write("flow.py", "from headrace import DAG\nwith DAG('python_flow', schedule=None):\n    pass\n")
    (project.root / "flow.dig").write_text("+a:\n  echo>: hello\n")
    sync = ProjectSync(project.store, SystemClock(), [ProjectFolder("p", project.root)], ParserSettings(processes=1))
    project.syncs.append(sync)
    sync.scan()
    assert (project.errors(), project.workflows()) == ({}, ["flow", "python_flow"])


def test_archives_of_dag_files_are_followed_like_files(project):
    def write(name):
        with zipfile.ZipFile(project.root / "part", "w") as archive:
            archive.writestr("flow.py", f"from airflow.sdk import DAG\nwith DAG('{name}', schedule=None):\n    pass\n")
        (project.root / "part").rename(project.root / "flows.zip")

    write("first")
    (project.root / "other.py").write_text("from airflow import DAG\nother = DAG('other', schedule=None)\n")
    sync = ProjectSync(project.store, SystemClock(), [ProjectFolder("p", project.root)], ParserSettings(processes=1))
    project.syncs.append(sync)
    sync.start()
    assert project.eventually(lambda: project.workflows() == ["first", "other"])
    write("second")
    assert project.eventually(lambda: project.workflows() == ["other", "second"])
