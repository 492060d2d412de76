"""Operators of a project's own file and of installed packages."""

from __future__ import annotations

import sys

import pytest

from headrace.authoring.dig import operator_names
from headrace.errors import HeadraceError
from headrace.operators.dig import registry

OPERATORS = """
    from headrace.operators.dig import Job, OperatorError, Outcome, PollAgain
    import words

    def greet(job):
        name = job.params.text("_command")
        return Outcome(store={"greeted": name, "word": words.HELLO})

    class PostMessage:
        obeys_retry = False
        def __init__(self, job):
            self.job = job
        def run(self):
            if not self.job.state:
                raise PollAgain(5, {"asked": 1})
            token = self.job.required_secret("chat.token")
            return Outcome(subtasks={"+each": {"greet>": token}}, export={"x": 1})

    def _hidden(job): pass
"""


@pytest.fixture
def plugins(project):
    project.write("dig_operators.py", OPERATORS)
    project.write("words.py", "HELLO = 'hello'")
    path = list(sys.path)
    yield project
    sys.path[:] = path
    sys.modules.pop("words", None)


def test_a_function_of_the_projects_file_is_an_operator(plugins):
    result = plugins.run("+t: {greet>: Ann}")
    assert result.store == {"greeted": "Ann", "word": "hello"}


def test_a_class_polls_reads_secrets_and_grows_tasks(plugins):
    plugins.answers.secrets = {"chat.token": "abc"}
    first = plugins.run("+t: {post_message>: hi}")
    assert (first.outcome, first.again_after_seconds) == ("again", 5)
    last = plugins.run("+t: {post_message>: hi}", poll_state=first.poll_state)
    assert [(node.key, node.operator) for node in last.growth] == [("+wf+t^sub", "noop"), ("+wf+t^sub+each", "greet")]
    assert (last.export, plugins.answers.masked) == ({"x": 1}, ["abc"])
    plugins.answers.secrets = {}
    failed = plugins.run("+t: {post_message>: hi}", poll_state=first.poll_state)
    assert failed.error.message.startswith("the project has no secret `chat.token`\n")
    assert not failed.is_retryable


@pytest.mark.parametrize(("name", "hint"), [("gret", "did you mean `greet>`?"), ("_hidden", "dig_operators.py")])
def test_a_name_that_the_file_does_not_define(plugins, name, hint):
    with pytest.raises(HeadraceError, match=f"unknown operator `{name}>`") as caught:
        plugins.load(f"+t: {{{name}>: x}}")
    assert hint in str(caught.value)


def test_another_project_does_not_have_it(project):
    with pytest.raises(HeadraceError, match="unknown operator `greet>`"):
        project.load("+t: {greet>: x}")


def test_a_file_that_breaks_fails_the_task_and_shows_where(project):
    project.write("dig_operators.py", "def go(job): pass\nraise RuntimeError('broken')")
    failed = project.run("+t: {go>: x}")
    assert (failed.error.type, failed.error.message) == ("RuntimeError", "broken")
    assert "dig_operators.py" in failed.error.traceback


PACKAGE = {
    "operator_shop.py": "def ring(job):\n    return {}\n",
    "operator_shop-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: operator-shop\nVersion: 1.0\n",
    "operator_shop-1.0.dist-info/entry_points.txt": (
        "[headrace.dig_operators]\nring = operator_shop:ring\nlost = operator_shop:nothing\n"
    ),
}


def test_an_installed_package_offers_operators(project, tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("site")
    for name, text in PACKAGE.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    monkeypatch.syspath_prepend(str(folder))
    operator_names.installed_operators.cache_clear()
    try:
        assert project.run("+t: {ring>: x}").outcome == "success"
        lost = project.run("+t: {lost>: x}").error.message
        assert lost.startswith("could not load operator `lost>` from `operator_shop:nothing`: AttributeError")
    finally:
        operator_names.installed_operators.cache_clear()
        registry._operators.pop("ring", None)
        sys.modules.pop("operator_shop", None)


def test_every_operator_that_files_may_name_can_be_loaded():
    assert set(registry.operator_names()) == operator_names.known_operators()
    for name in registry.operator_names():
        assert callable(registry.find_operator(name).run)
