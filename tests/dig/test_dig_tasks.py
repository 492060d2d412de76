"""One try of a `.dig` task: built-in variables, outcomes, retries, polling, plug-ins, what gets imported."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.authoring import load_file
from headrace.authoring.dig import operator_names
from headrace.errors import DefinitionError
from headrace.operators.dig import Job, Outcome, PollAgain, registry


def echoed(project, capfd, template: str, prefix: str = "", **request) -> str:
    result = project.run(f"{prefix}\n+t: {{echo>: {json.dumps(template)}}}", **request)
    assert result.outcome == "success", result.error
    return capfd.readouterr().out.removesuffix("\n")


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("${timezone}", "Asia/Tokyo"),
        ("${session_time}", "2026-02-04T00:05:06+09:00"),
        ("${session_date} ${session_date_compact}", "2026-02-04 20260204"),
        ("${session_local_time} ${session_tz_offset}", "2026-02-04 00:05:06 +0900"),
        ("${session_unixtime + 1}", "1770131107"),
        ("${project_id}.${session_id}.${attempt_id}", "1.2.3"),
        ("${session_uuid.length}", "36"),
        ("${task_name}", "+wf+t"),
        ("${typeof retry_attempt_name}", "undefined"),
        ("${typeof last_session_time}", "undefined"),
        ("<${last_executed_session_time}${last_executed_session_unixtime}>", "<>"),
        ("${last_executed_session_tz_offset}", "+0900"),
    ],
)
def test_built_in_variables(project, capfd, template, text):
    run = {"project_id": 1, "run_id": 2, "attempt_id": 3}
    assert echoed(project, capfd, template, "timezone: Asia/Tokyo", run=run) == text


def test_a_retried_attempt_knows_its_name(project, capfd):
    assert echoed(project, capfd, "${retry_attempt_name}", run={"attempt_name": "again"}) == "again"


def test_neighbouring_times_come_from_the_schedule(project, capfd):
    template = "${last_session_time} ${next_session_date} ${next_session_unixtime}"
    text = echoed(project, capfd, template, "schedule: {daily>: 07:00:00}", params={"last_session_time": "mine"})
    assert text == "2026-02-03T00:00:00+00:00 2026-02-04 1770163200"


def test_without_a_schedule_passed_times_are_put_into_all_forms(project, capfd):
    params = {"last_session_time": "2026-01-01T00:00:00+00:00"}
    assert echoed(project, capfd, "${last_session_date_compact}", params=params) == "20260101"


def test_built_ins_win_over_parameters_and_lose_against_own_ones(project, capfd):
    text = "+t: {task_name: mine, echo>: '${task_name} ${session_date}'}"
    assert project.run(text, params={"session_date": "theirs"}).outcome == "success"
    assert capfd.readouterr().out == "mine 2026-02-03\n"


def test_exports_are_evaluated_in_the_order_they_were_written(project, capfd):
    assert echoed(project, capfd, "${a}", params={"b": "x", "a": "${b}y"}) == "xy"


def test_a_result_carries_the_claim_it_belongs_to(project):
    result = project.run("+t: {echo>: hi}")
    assert (result.task_id, result.fence, result.outcome, result.growth) == (7, 3, "success", ())


def test_fail_gives_its_message(project):
    result = project.run("+t: {fail>: 'no ${thing}', _retry: 3}", params={"thing": "luck"})
    assert (result.outcome, result.error.message, result.is_retryable) == ("failed", "no luck", False)


@pytest.mark.parametrize("task", ["echo>: ~", "if>: x, _do: {echo>: 1}", "loop>: x, _do: {echo>: 1}", "wait>: x"])
def test_some_operators_are_not_retried_for_their_own_failure(project, task):
    result = project.run(f"+t: {{{task}, _retry: 3}}")
    assert (result.outcome, result.is_retryable) == ("failed", False)


def test_an_undefined_variable_fails_for_good(project):
    result = project.run("+t: {py>: 'echo.${nope}', _retry: 3}")
    assert (result.outcome, result.is_retryable, result.error.type) == ("failed", False, "ExpressionError")
    assert result.error.message == "could not evaluate `${nope}` of `py>`: ReferenceError: nope is not defined"


def test_a_failure_handler_reads_an_error_that_quotes_an_expression(project, capfd):
    file = project.load("+t: {sh>: 'echo ${nope}', _error: {echo>: '${error.message}'}}")
    task = file.workflows[0].nodes[1]
    message = project.run_node(file, task).error.message
    (handler,) = task.on_failure
    assert project.run_node(file, handler, params={"error": {"message": message}}).outcome == "success"
    assert capfd.readouterr().out == "could not evaluate ${nope} of sh>: ReferenceError: nope is not defined\n"


def test_what_failed_can_be_told_by_a_shell_script(project, tmp_path, capfd):
    file = project.load("""+t: {sh>: x, _error: {sh>: 'echo "failed: ${error.message}"'}}""")
    (handler,) = file.workflows[0].nodes[1].on_failure
    message = f"could not start `touch {tmp_path}/harm`: no\nhint: did you mean `torch`?"
    assert project.run_node(file, handler, params={"error": {"message": message}}).outcome == "success"
    assert capfd.readouterr().out == f"failed: could not start touch {tmp_path}/harm: no\n"
    assert not (tmp_path / "harm").exists()


@pytest.mark.parametrize(
    ("task", "hint"),
    [
        ("sh>: 'for f in *; do echo ${f}; done'", "its own variables are written `$name`"),
        ("sh>: 'echo ${HOME:-x}'", "its own variables are written `$name`"),
        ("sh>: 'echo ${table}', table: x", "write `table` above `sh>`"),
        ("echo>: '${session_tme}'", "did you mean `session_time`?"),
    ],
)
def test_an_undefined_variable_is_explained(project, task, hint):
    assert hint in project.run(f"+t: {{{task}}}").error.message


def test_parameters_above_the_operator_are_seen_by_it(project, capfd):
    assert project.run("+t: {table: x, echo>: 'table ${table}'}").outcome == "success"
    assert capfd.readouterr().out == "table x\n"


def test_an_unknown_operator_suggests_another(project):
    with pytest.raises(DefinitionError, match="unknown operator `for_eech>`") as caught:
        project.run("+t: {for_eech>: {}, _retry: 3}")
    assert (caught.value.hint, caught.value.line) == ("did you mean `for_each>`?", 1)


def test_a_retry_that_is_evaluated_asks_to_be_called_again(project):
    text = "+t: {sh>: exit 1, _retry: {limit: '${n}', interval: 10, interval_type: exponential, max_interval: 15}}"
    results = [
        project.run(text, params={"n": 2}, poll_state={"retry_count": count} if count else {}) for count in range(3)
    ]
    assert [result.outcome for result in results] == ["again", "again", "failed"]
    assert [result.again_after_seconds for result in results[:2]] == [10.0, 15.0]
    assert results[1].poll_state == {"retry_count": 2}


def test_wait_holds_no_process(project):
    result = project.run("+t: {wait>: 1m 30s}", waited_seconds=10.0)
    assert (result.outcome, result.again_after_seconds) == ("again", 90)
    assert project.run("+t: {wait>: 1m 30s, poll_interval: 20s}").again_after_seconds == 20
    rest = project.run("+t: {wait>: 1m 30s}", waited_seconds=60.0, poll_state=result.poll_state)
    assert (rest.outcome, rest.again_after_seconds) == ("again", 40)
    assert project.run("+t: {wait>: 1m 30s}", waited_seconds=100.0, poll_state=rest.poll_state).outcome == "success"


def test_a_blocking_wait_takes_no_interval(project):
    assert project.run("+t: {wait>: 0s, blocking: true}").outcome == "success"
    assert "cannot be combined" in project.run("+t: {wait>: 1s, blocking: true, poll_interval: 1s}").error.message


def test_unused_parameters_are_logged_and_nothing_more(project, caplog):
    with caplog.at_level(logging.ERROR):
        result = project.run("+t: {wait>: 0s, pol_interval: 1s, _check: {echo>: 1}, _retry: 1}")
    assert result.outcome == "success"
    assert [record.getMessage() for record in caplog.records] == [
        "parameter `pol_interval` of task `+wf+t` is not used, did you mean `poll_interval`?"
    ]


def test_parameters_given_to_user_code_count_as_used(project, caplog):
    with caplog.at_level(logging.ERROR):
        assert project.run("+t: {sh>: 'true', mine: 1}").outcome == "success"
    assert caplog.records == []


@pytest.fixture
def plug_in(monkeypatch):
    """`register` for one test: other tests in this process do not see the operator."""
    monkeypatch.setattr(operator_names, "_known", set(operator_names.known_operators()))
    monkeypatch.setattr(registry, "_operators", dict(registry._operators))
    return registry.register


def test_a_plug_in_adds_an_operator(project, plug_in):
    def poll(job: Job) -> Outcome:
        if not job.state:
            raise PollAgain(2.5, {"seen": job.params.text("_command")})
        return Outcome(store={"seen": job.state["seen"]}, reset=("old.key",))

    plug_in("poll_for_test", poll)
    first = project.run("+t: {poll_for_test>: 5}")
    assert (first.outcome, first.again_after_seconds, first.poll_state) == ("again", 2.5, {"seen": "5"})
    second = project.run("+t: {poll_for_test>: 5}", poll_state=first.poll_state)
    assert (second.outcome, second.store, second.reset) == ("success", {"seen": "5"}, ("old.key",))


def test_an_operator_renders_texts_that_are_not_among_its_parameters(project, plug_in):
    def render(job: Job) -> Outcome:
        return Outcome(store={"text": job.render("${x} ${moment(0).format('HH:mm')} $$ ${secret:a}")})

    plug_in("render_for_test", render)
    result = project.run("timezone: Asia/Tokyo\n+t: {render_for_test>: 1, x: '${1 + 1}'}")
    assert result.store == {"text": "2 09:00 $ ${secret:a}"}


def test_an_operators_own_exception_fails_the_task(project, plug_in):
    def crash(job: Job) -> None:
        raise RuntimeError("boom")

    plug_in("crash_for_test", crash)
    result = project.run("+t: {crash_for_test>: 1}")
    assert (result.error.type, result.error.message, result.is_retryable) == ("RuntimeError", "boom", True)
    assert "in crash" in result.error.traceback


def imported_by(module: str) -> set[str]:
    heavy = ("_quickjs", "sqlalchemy", "click", "jinja2", "pendulum")
    program = f"import sys, {module}; print(*[name for name in {heavy} if name in sys.modules])"
    return set(
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    )


def test_loading_files_needs_no_javascript_and_running_tasks_no_database():
    assert imported_by("headrace.authoring.dig.loading") == set()
    assert imported_by("headrace.runner.dig_task") == {"_quickjs"}


def test_the_example_compiles():
    folder = Path(__file__).parents[2] / "examples/hello_dig"
    (workflow,) = load_file(folder, "hello.dig").workflows
    assert [node.key for node in workflow.nodes] == [
        "+hello",
        "+hello+start",
        "+hello+prepare",
        "+hello+prepare+shell",
        "+hello+prepare+python",
        "+hello+each",
        "+hello+end",
    ]
