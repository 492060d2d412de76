"""A small installation: standalone, and the commands that look at it and steer it."""

from __future__ import annotations

import json
import signal

import pytest


@pytest.fixture
def standalone(headrace):
    """A running `headrace standalone` over a folder with one good and one bad file."""
    headrace.dag("@task\ndef hello():\n    print('good morning')\n\nhello()")
    headrace.write("bad.py", "import nothing_like_this  # airflow dag")
    process = headrace.start("standalone", str(headrace.folder / "flows"))
    assert "could not load" in headrace.read_until(process, "workflow `flow` appeared")
    yield process
    if process.poll() is None:
        process.kill()
        process.communicate()


def test_a_triggered_run_can_be_followed_listed_and_explained(headrace, standalone):
    (error,) = headrace.json("errors")[0]["errors"]
    assert (error["file"], error["line"]) == ("bad.py", 1)
    run_id = str(headrace.json("trigger", "flow")[0]["run_id"])
    assert "good morning" in headrace("logs", run_id, "hello", "--follow").out
    assert headrace.json("tasks", "latest")[0]["tasks"]["hello"]["tries"] == 1
    assert "hello" in headrace("tasks", "flow").out
    explained = headrace.json("why", run_id, "hello")[0]["reasons"][0]
    assert explained["kind"] in ("ended", "running")
    (run,) = headrace.json("runs", "flow")[0]["runs"]
    assert str(run["run_id"]) == run_id
    standalone.send_signal(signal.SIGTERM)
    standalone.communicate(timeout=30)
    assert standalone.returncode == 0


def test_a_folder_of_the_same_name_takes_over_only_when_nobody_serves_the_first(headrace, standalone):
    other = headrace.folder / "other" / "flows"
    other.mkdir(parents=True)
    (other / "else.dig").write_text("+a:\n  echo>: x\n")
    refused = headrace("standalone", str(other))
    assert refused.returncode == 1
    assert f"error: project `flows` cannot be saved from `{other}`" in refused.err
    assert f"serves it from `{headrace.folder / 'flows'}`" in refused.err
    assert "hint: give this folder another name with `--projects NAME=PATH`" in refused.err
    assert [one["name"] for one in headrace.json("workflows")[0]["workflows"]] == ["flow"]
    standalone.kill()
    standalone.communicate()
    process = headrace.start("standalone", str(other))
    try:
        headrace.read_until(process, "workflow `else` appeared")
        assert [one["name"] for one in headrace.json("workflows")[0]["workflows"]] == ["else"]
    finally:
        process.kill()
        process.communicate()


def test_a_project_can_be_deleted_when_nobody_serves_its_folder(headrace, standalone):
    refused = headrace("delete", "flows")
    assert refused.returncode == 1
    assert "error: project `flows` cannot be deleted: scheduler" in refused.err, "before it asks"
    assert "hint: stop that server first" in refused.err
    assert len(headrace.json("workflows")[0]["workflows"]) == 1
    standalone.kill()
    standalone.communicate()
    assert headrace("delete", "flows", "--force").out == "project `flows` is deleted\n"
    assert headrace.json("workflows")[0]["workflows"] == []


def test_a_store_that_was_deleted_ends_it_with_one_message_and_is_not_made_anew(headrace, standalone):
    store = headrace.home / "headrace.db"
    store.unlink()
    _, err = standalone.communicate(timeout=30)
    assert standalone.returncode == 2
    assert err.count(f"there is no Headrace database any more at `sqlite:///{store}`") == 1
    assert "Traceback" not in err
    assert not store.exists()
    again = headrace.start("standalone", str(headrace.folder / "flows"))
    try:
        headrace.read_until(again, "workflow `flow` appeared")
        assert headrace("db", "check").returncode == 0, "nothing of the old one is in the new one"
    finally:
        again.kill()
        again.communicate()


def test_an_empty_standalone_stops_cleanly_and_leaves_a_sound_store(headrace):
    process = headrace.start("standalone", str(headrace.folder))
    process.stderr.readline()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 0
    assert json.loads(headrace("workflows", "--json").out) == {"workflows": [], "next": None}
    assert headrace("db", "check").returncode == 0
