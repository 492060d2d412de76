"""Projects, revisions and workflows: what the files say, saved only where it changed."""

from __future__ import annotations

import msgspec
import pytest
from sqlalchemy import func, select
from store_bench import flow, node

from headrace.definition import Schedule
from headrace.errors import DefinitionError, NotFoundError, StateError
from headrace.store import (
    FileError,
    NewRun,
    ScheduleRow,
    create_run,
    ensure_project,
    file_digests,
    get_schedule,
    register,
    remove_file,
    resign,
    revision_content,
    save_error,
    save_file,
    save_schedule,
    unsaved_folders,
)
from headrace.store.schema import project, revision, source_error, workflow, workflow_version


def count(bench, table) -> int:
    with bench.store.read() as tx:
        return tx.execute(select(func.count()).select_from(table)).scalar_one()


def save(bench, *flows, file="f.py", digest="1", content=None):
    with bench.store.begin() as tx:
        return save_file(tx, ensure_project(tx, "p", "/p", bench.now), file, digest, flows, bench.now, content)


def kept(bench, digest, root="/p", file="f.py"):
    with bench.store.read() as tx:
        return revision_content(tx, root, file, digest)


def test_a_project_keeps_its_id_when_its_folder_moves(bench):
    with bench.store.begin() as tx:
        first = ensure_project(tx, "p", "/old", bench.now)
        second = ensure_project(tx, "p", "/new", bench.now)
    assert first == second
    assert [row.root for row in bench.rows(project)] == ["/new"]


def serve(bench, root, name="s-1", seconds=15):
    """A scheduler whose process saves project `p` from a folder."""
    with bench.store.begin() as tx:
        return register(
            tx, kind="scheduler", name=name, place="here/1", pid=7, slots=0, queues=(), now=bench.now,
            lease_micros=seconds * 1_000_000, projects={"p": root},
        )  # fmt: skip


def ensure(bench, root, **given):
    with bench.store.begin() as tx:
        return ensure_project(tx, "p", root, bench.now, **given)


def test_a_project_stays_where_a_living_process_serves_it(bench):
    first = ensure(bench, "/old")
    serving = serve(bench, "/old")
    serve(bench, "/new", name="s-2")
    with pytest.raises(StateError, match=r"cannot be saved from `/new`: scheduler `s-1` .* serves it from `/old`"):
        ensure(bench, "/new")
    assert [row.root for row in bench.rows(project)] == ["/old"]
    assert ensure(bench, "/old") == first
    with bench.store.begin() as tx:
        resign(tx, serving, bench.now)
    assert ensure(bench, "/new") == first
    with pytest.raises(StateError, match="serves it from `/new`"):
        ensure(bench, "/old")


def test_a_project_moves_when_the_lease_of_its_server_has_run_out(bench):
    ensure(bench, "/old")
    serve(bench, "/old")
    bench.now += 16_000_000
    ensure(bench, "/new")
    assert [row.root for row in bench.rows(project)] == ["/new"]


def test_who_knows_what_is_saved_of_a_folder_does_not_move_the_project(bench):
    ensure(bench, "/old")
    with pytest.raises(StateError, match="was saved from `/old` meanwhile, and not from `/new`"):
        ensure(bench, "/new", may_move=False)


def test_folders_that_cannot_be_saved_are_told_with_their_reasons(bench):
    ensure(bench, "/old")
    serve(bench, "/old", name="s-1")
    serve(bench, "/old", name="same")
    serve(bench, "/new", name="other")
    with bench.store.read() as tx:
        (unsaved,) = unsaved_folders(tx, bench.now)
    assert (unsaved.folder.process, unsaved.folder.root) == ("other", "/new")
    bench.now += 16_000_000
    with bench.store.read() as tx:
        assert unsaved_folders(tx, bench.now) == []


def test_saving_an_unchanged_file_writes_nothing(bench):
    (first,) = save(bench, flow(node("a")))
    (second,) = save(bench, flow(node("a")))
    assert (first.is_new, first.is_changed) == (True, True)
    assert (second.id, second.is_new, second.is_changed) == (first.id, False, False)
    assert (count(bench, revision), count(bench, workflow_version)) == (1, 1)


def test_a_changed_file_is_a_new_revision_and_a_changed_definition_says_so(bench):
    (first,) = save(bench, flow(node("a")))
    (same,) = save(bench, flow(node("a")), digest="2")
    (other,) = save(bench, flow(node("b")), digest="3")
    assert (same.is_changed, other.is_changed) == (False, True)
    assert (count(bench, revision), count(bench, workflow_version)) == (3, 3)
    (row,) = bench.rows(workflow)
    assert row.id == first.id and row.current_version_id == max(v.id for v in bench.rows(workflow_version))


def test_digests_are_those_of_the_newest_revisions(bench):
    save(bench, flow(node("a")), digest="1")
    save(bench, flow(node("a")), digest="2")
    save(bench, flow(node("a"), name="other"), file="g.py", digest="9")
    with bench.store.begin() as tx:
        assert file_digests(tx, ensure_project(tx, "p", "/p", bench.now)) == {"f.py": "2", "g.py": "9"}


def test_a_workflow_that_its_file_no_longer_defines_is_gone_with_its_schedule(bench):
    one, two = save(bench, flow(node("a"), name="one"), flow(node("a"), name="two"))
    with bench.store.begin() as tx:
        for saved in (one, two):
            save_schedule(tx, ScheduleRow(saved.id, "d", 1, None, None, 1, None))
    save(bench, flow(node("a"), name="one"), digest="2")
    assert {row.name: bool(row.is_gone) for row in bench.rows(workflow)} == {"one": False, "two": True}
    with bench.store.read() as tx:
        assert get_schedule(tx, one.id) is not None
        assert get_schedule(tx, two.id) is None


def test_a_workflow_that_comes_back_is_new_again_and_keeps_its_id(bench):
    (first,) = save(bench, flow(node("a")))
    with bench.store.begin() as tx:
        remove_file(tx, ensure_project(tx, "p", "/p", bench.now), "f.py")
    assert [bool(row.is_gone) for row in bench.rows(workflow)] == [True]
    (again,) = save(bench, flow(node("a")))
    assert (again.id, again.is_new) == (first.id, True)
    assert [bool(row.is_gone) for row in bench.rows(workflow)] == [False]


def test_a_workflow_may_move_to_another_file_only_after_it_left_the_first(bench):
    save(bench, flow(node("a")), file="f.py")
    with pytest.raises(DefinitionError, match=r"workflow `w` is defined twice: in `f\.py` and in `g\.py`"):
        save(bench, flow(node("a")), file="g.py")
    with bench.store.begin() as tx:
        remove_file(tx, ensure_project(tx, "p", "/p", bench.now), "f.py")
    save(bench, flow(node("a")), file="g.py")
    assert [(row.file, bool(row.is_gone)) for row in bench.rows(workflow)] == [("g.py", False)]


def test_a_broken_file_keeps_its_last_good_revision_until_it_is_mended(bench):
    save(bench, flow(node("a")))
    with bench.store.begin() as tx:
        save_error(tx, ensure_project(tx, "p", "/p", bench.now), "f.py", FileError("first"), bench.now)
        save_error(
            tx, ensure_project(tx, "p", "/p", bench.now), "f.py", FileError("second", 3, "look", "tb"), bench.now
        )
    (row,) = bench.rows(source_error)
    assert (row.message, row.line, row.hint, row.detail) == ("second", 3, "look", "tb")
    assert [bool(row.is_gone) for row in bench.rows(workflow)] == [False]
    save(bench, flow(node("a")), digest="2")
    assert bench.rows(source_error) == []


def test_a_workflow_may_be_born_paused_and_stays_as_the_user_left_it(bench):
    (saved,) = save(bench, flow(node("a"), is_paused_at_creation=True))
    assert [bool(row.is_paused) for row in bench.rows(workflow)] == [True]
    bench.pause(saved.id, False)
    save(bench, flow(node("b"), is_paused_at_creation=True), digest="2")
    assert [bool(row.is_paused) for row in bench.rows(workflow)] == [False]


def test_two_projects_may_have_workflows_of_the_same_name(bench):
    (one,) = bench.save(flow(node("a")), project="p")
    (two,) = bench.save(flow(node("a")), project="q")
    assert one != two


def test_a_version_is_read_back_as_it_was_saved(bench):
    saved = flow(node("a", config={"b": 1, "a": [2]}), schedule=Schedule(type="once"), params={"z": 1, "a": {"b": 2}})
    attempt_id = bench.start(saved)
    request = bench.claim_requests(bench.agent())["a"]
    assert msgspec.structs.replace(request.node, isolation="default") == saved.nodes[1]
    assert (request.run.workflow, request.source.file, request.run.attempt_id) == ("w", "w.py", attempt_id)


def test_a_run_of_an_unknown_workflow_is_an_error(bench):
    with pytest.raises(NotFoundError, match="workflow 999 is not in the store"), bench.store.begin() as tx:
        create_run(tx, NewRun(999, "r"), bench.now)


def test_each_revision_keeps_its_bytes(bench):
    save(bench, flow(node("a")), digest="1", content=b"one\x00\xff")
    save(bench, flow(node("a")), digest="2", content=b"")
    save(bench, flow(node("a")), digest="3")
    assert [kept(bench, digest) for digest in "1234"] == [b"one\x00\xff", b"", None, None]
    assert kept(bench, "1", root="/other") is None
    assert kept(bench, "1", file="other.py") is None


def test_a_revision_whose_bytes_come_back_has_them_still(bench):
    save(bench, flow(node("a")), digest="1", content=b"one")
    save(bench, flow(node("a")), digest="2", content=b"two")
    save(bench, flow(node("a")), digest="1")
    assert kept(bench, "1") == b"one"


def test_bytes_are_added_to_a_revision_that_was_saved_without_them_and_then_left_alone(bench):
    save(bench, flow(node("a")))
    save(bench, flow(node("a")), content=b"one")
    save(bench, flow(node("a")), content=b"never looked at")
    save(bench, flow(node("a")))
    assert kept(bench, "1") == b"one"
    assert count(bench, revision) == 1


def test_a_file_of_more_than_a_mebibyte_is_not_kept(bench):
    save(bench, flow(node("a")), digest="1", content=b"x" * 1024 * 1024)
    save(bench, flow(node("a")), digest="2", content=b"x" * (1024 * 1024 + 1))
    assert (len(kept(bench, "1")), kept(bench, "2")) == (1024 * 1024, None)
