"""What every executor does. A new executor adds a parameter to `make_executor`."""

from __future__ import annotations

import json
import threading

import msgspec
import pytest
from toy_project import nobody, run_all, value_of

from headrace.definition import NOOP
from headrace.handoff import Answer


@pytest.fixture
def executor(make_executor):
    return make_executor(nobody)


def test_a_request_gives_one_result_with_its_value(executor, project):
    project.write("def double(request, channel): return [21 * 2]")
    request = project.request("double")
    (result,) = run_all(executor, request)
    assert (result.task_id, result.fence, value_of(result)) == (request.task_id, request.fence, [42])
    assert executor.poll(0) == []


def test_a_noop_needs_no_file(executor, project):
    (result,) = run_all(executor, project.request(NOOP, file="missing.toy"))
    assert result.outcome == "success"


def test_what_is_submitted_is_running_until_it_is_reported(executor, project):
    project.write("def nothing(request, channel): pass")
    request = project.request("nothing")
    executor.submit([request])
    assert executor.running() == [(request.task_id, 1)]
    executor.poll(None)
    assert executor.running() == []


def test_questions_are_answered_by_the_broker(make_executor, project):
    asked = []

    def broker(request, ask):
        asked.append((request.key, ask.verb, ask.args))
        return Answer(id=ask.id, value=msgspec.Raw(json.dumps({"answer": 42}).encode()))

    project.write("def curious(request, channel): return channel.ask('get_value', task='other')['answer']")
    (result,) = run_all(make_executor(broker), project.request("curious"))
    assert value_of(result) == 42
    assert asked == [("curious", "get_value", {"task": "other"})]


def test_missing_and_refused_answers_are_different_exceptions(make_executor, project):
    def broker(request, ask):
        if ask.args["name"] == "missing":
            return Answer(id=ask.id, is_missing=True, error="no variable `missing`")
        raise RuntimeError("the database is away")

    project.write(
        """
        from headrace.handoff import ChannelError, MissingError

        def curious(request, channel):
            said = []
            for name in ("missing", "refused"):
                try:
                    channel.ask("get_variable", name=name)
                except (ChannelError, MissingError) as error:
                    said.append([type(error).__name__, str(error)])
            return said
        """
    )
    (result,) = run_all(make_executor(broker), project.request("curious"))
    assert value_of(result) == [
        ["MissingError", "no variable `missing`"],
        ["ChannelError", "could not answer `get_variable`: the database is away"],
    ]


def test_an_exception_fails_the_try_and_shows_only_the_users_frames(executor, project):
    project.write("def broken(request, channel):\n    return 1 / 0\n")
    (result,) = run_all(executor, project.request("broken"))
    assert result.outcome == "failed" and result.error is not None
    assert (result.error.type, result.error.message) == ("ZeroDivisionError", "division by zero")
    assert "flow.toy" in result.error.traceback
    assert "headrace" not in result.error.traceback.replace(str(project.root), "")


def test_leaving_with_sys_exit_fails_the_try(executor, project):
    project.write("import sys\ndef leave(request, channel): sys.exit(3)")
    (result,) = run_all(executor, project.request("leave"))
    assert result.outcome == "failed" and result.error is not None
    assert result.error.message == "task `leave` called sys.exit(3)"


def test_a_result_that_is_not_json_fails_the_try(executor, project):
    project.write(
        """
        from headrace.handoff import TaskResult
        def odd(request, channel):
            return TaskResult(task_id=request.task_id, fence=request.fence, outcome="success", store={"it": object()})
        """
    )
    (result,) = run_all(executor, project.request("odd"))
    assert result.outcome == "failed" and result.error is not None
    assert result.error.message.startswith("task `odd` gave a result that is not made of JSON values")


def test_printed_and_logged_lines_are_in_the_log(executor, project):
    project.write(
        """
        import logging, sys
        def talk(request, channel):
            print("on stdout")
            print("on stderr", file=sys.stderr)
            logging.getLogger("my.task").info("logged")
        """
    )
    request = project.request("talk")
    run_all(executor, request)
    lines = project.log(request).splitlines()
    assert lines[:2] == ["on stdout", "on stderr"]
    assert lines[2].endswith("INFO my.task: logged")


def test_masked_values_do_not_reach_the_log(executor, project):
    project.write(
        """
        def talk(request, channel):
            channel.ask("mask", values=["hunter22"])
            print("the password is hunter22!")
        """
    )
    request = project.request("talk")
    run_all(executor, request)
    assert project.log(request) == "the password is ***!\n"


def test_secrets_of_connections_and_variables_are_masked_unasked(make_executor, project):
    values = {
        "get_connection": {"conn_id": "db", "login": "app", "password": "pass-word", "extra": '{"api_key": "key-key"}'},
        "get_secret": "se-cret",
        "get_variable": "to-ken",
    }

    def broker(request, ask):
        return Answer(id=ask.id, value=msgspec.Raw(json.dumps(values[ask.verb]).encode()))

    project.write(
        """
        def talk(request, channel):
            print(channel.ask("get_connection", name="db"))
            print(channel.ask("get_secret", name="s"))
            print(channel.ask("get_variable", name="github_token"))
            print(channel.ask("get_variable", name="plain_name"))
        """
    )
    request = project.request("talk")
    run_all(make_executor(broker), request)
    log = project.log(request)
    assert "'login': 'app'" in log
    assert not [secret for secret in ("pass-word", "key-key", "se-cret", "to-ken") if secret in log]


def test_plain_variables_stay_readable(make_executor, project):
    def broker(request, ask):
        return Answer(id=ask.id, value=msgspec.Raw(b'"harmless"'))

    project.write("def talk(request, channel): print(channel.ask('get_variable', name='color'))")
    request = project.request("talk")
    run_all(make_executor(broker), request)
    assert project.log(request) == "harmless\n"


def test_a_try_that_is_canceled_before_it_starts_is_stopped(executor, project):
    project.write("def nothing(request, channel): pass")
    request = project.request("nothing")
    executor.submit([request])
    executor.cancel(request.task_id, request.fence)
    (result,) = executor.poll(None)
    assert result.outcome == "stopped"
    assert executor.poll(0) == []


def test_canceling_what_is_not_there_does_nothing(executor):
    executor.cancel(99, 1)
    assert executor.poll(0) == []


def test_wake_ends_a_poll_from_another_thread(executor):
    thread = threading.Thread(target=executor.wake)
    thread.start()
    assert executor.poll(None) == []
    thread.join()


def test_many_wakes_count_as_one(executor):
    for _ in range(100_000):
        executor.wake()
    assert executor.poll(None) == []
    assert executor.poll(0) == []


def test_closing_ends_with_nothing_running(make_executor, project):
    project.write("def nothing(request, channel): pass")
    executor = make_executor(nobody)
    executor.submit([project.request("nothing")])
    executor.close(0)
    assert executor.running() == []
