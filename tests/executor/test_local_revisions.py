"""Which bytes a warm parent loads when the file is not the one that the request was made for."""

from __future__ import annotations

import pytest
from toy_project import run_all, value_of

OLD = "def say(request, channel): return ['old', __file__]"
NOTICE = "the file changed since this run's revision was saved; running the saved one\n"


class Kept:
    """What a store would know, and how often it was asked."""

    def __init__(self, content):
        self.content = content
        self.asked = []

    def __call__(self, source):
        self.asked.append(source)
        if isinstance(self.content, Exception):
            raise self.content
        return self.content


def change(project, text="def say(request, channel): return ['new', __file__]"):
    """Another text under the same revision."""
    revision = project.revision
    project.write(text)
    project.revision = revision


def test_a_file_that_did_not_change_is_loaded_without_a_word(local, project):
    project.write(OLD)
    request = project.request("say")
    (result,) = run_all(local(contents=Kept(b"1 / 0")), request)
    assert value_of(result)[0] == "old"
    assert not project.has_log(request)


@pytest.mark.parametrize("text", ["def say(request, channel): return ['new']", "1 / 0", "def ("])
def test_the_kept_content_replaces_a_changed_file_under_its_path(local, project, text):
    project.write(OLD)
    change(project, text)
    requests = [project.request("say"), project.request("say")]
    for result in run_all(local(contents=Kept(OLD.encode())), *requests):
        assert value_of(result) == ["old", str(project.root / project.file)]
    assert [project.log(request) for request in requests] == [NOTICE, NOTICE]


def test_a_kept_content_that_does_not_fit_into_a_socket_arrives_whole(local, project):
    kept = f"{OLD}\n# {'x' * 1_000_000}"
    project.write(kept)
    change(project)
    (result,) = run_all(local(contents=Kept(kept.encode())), project.request("say"))
    assert value_of(result)[0] == "old"


def test_the_kept_content_is_asked_for_once_per_warm_parent(local, project):
    project.write(OLD)
    kept = Kept(OLD.encode())
    executor = local(contents=kept)
    for _ in range(3):
        run_all(executor, project.request("say"))
    assert kept.asked == [project.request("say").source]


@pytest.mark.parametrize("contents", [None, Kept(None), Kept(OSError("the store is away"))])
def test_without_kept_content_the_file_is_loaded_as_it_is_with_a_warning(local, project, contents):
    project.write(OLD)
    change(project)
    request = project.request("say")
    (result,) = run_all(local(contents=contents), request)
    assert value_of(result)[0] == "new"
    assert project.log(request).startswith("warning: the file changed since this run's revision was saved")


def test_a_changed_file_that_does_not_load_is_told_apart_from_the_revision(local, project):
    project.write(OLD)
    change(project, "1 / 0")
    (result,) = run_all(local(), project.request("say"))
    assert result.error.type == "LoadError"
    assert "changed since this run's revision was saved" in result.error.traceback


def test_a_source_without_a_revision_is_loaded_as_it_is(local, project):
    project.write(OLD)
    project.revision = ""
    kept = Kept(b"1 / 0")
    request = project.request("say")
    (result,) = run_all(local(contents=kept), request)
    assert value_of(result)[0] == "old"
    assert (kept.asked, project.has_log(request)) == ([], False)
