"""Branches by the clock, conditions before a task, e-mail, and functions in another Python."""

from __future__ import annotations

import os
import sys
import zipfile
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from headrace.testing.mail_box import MailBox

FLOW = """
from datetime import date, datetime, time, timedelta, timezone
from airflow.exceptions import *
from airflow.sdk import DAG, task
from airflow.operators.email import EmailOperator
from airflow.operators.empty import EmptyOperator
from airflow.operators.latest_only import LatestOnlyOperator
from airflow.providers.standard.operators.datetime import BranchDateTimeOperator
from airflow.providers.standard.operators.python import *
from airflow.providers.standard.operators.smooth import SmoothOperator
from airflow.providers.standard.operators.weekday import BranchDayOfWeekOperator
from airflow.utils.weekday import WeekDay
with DAG("d"{options}) as dag:
{body}
"""


@pytest.fixture
def flow(project):
    def load(body, options=""):
        lines = "\n".join("    " + line for line in body.strip("\n").splitlines())
        project.load(FLOW.replace("{body}", lines).replace("{options}", options))
        return project

    return load


# ---- branches by the clock ----------------------------------------------------------------------------------------

BRANCH = """
branch = {operator}(task_id="branch", follow_task_ids_if_true="yes", follow_task_ids_if_false=["no"], {arguments})
branch >> [EmptyOperator(task_id="yes"), EmptyOperator(task_id="no")]
"""


def followed(flow, operator, arguments, options="", **fields):
    result = flow(BRANCH.format(operator=operator, arguments=arguments), options).run("branch", **fields)
    assert result.outcome == "success", result.error
    return result.followed


# The logical date is 2026-02-03T04:05:06Z, a Tuesday.
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("target_lower=time(4), target_upper=time(5)", "yes"),
        ("target_lower=time(5), target_upper=time(6)", "no"),
        ("target_lower=time(23), target_upper=time(5)", "no"),
        ("target_lower=None, target_upper=time(5)", "yes"),
        ("target_lower=time(4, 30), target_upper=None", "no"),
        ("target_lower=datetime(2026, 2, 3), target_upper=datetime(2026, 2, 4)", "yes"),
        ("target_lower=datetime(2026, 2, 4), target_upper=datetime(2026, 2, 3)", "no"),
        ("target_lower=datetime(2026, 2, 3, 4, 5, 6), target_upper=None", "yes"),
    ],
)
def test_a_branch_by_the_time(flow, arguments, expected):
    assert followed(flow, "BranchDateTimeOperator", f"{arguments}, use_task_logical_date=True") == (expected,)


def test_times_of_day_are_in_the_time_zone_of_the_dag(flow):
    # 13:05 in Tokyo.
    arguments = "target_lower=time(13), target_upper=time(14), use_task_execution_date=True"
    options = ", start_date=__import__('pendulum').datetime(2026, 1, 1, tz='Asia/Tokyo')"
    assert followed(flow, "BranchDateTimeOperator", arguments, options) == ("yes",)


def test_the_present_decides_unless_the_logical_date_shall(flow):
    assert followed(flow, "BranchDateTimeOperator", "target_lower=datetime(2026, 2, 4), target_upper=None") == ("yes",)
    with pytest.raises(Exception, match="neither target_lower nor target_upper"):
        followed(flow, "BranchDateTimeOperator", "target_lower=None, target_upper=None")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("week_day='tuesday', use_task_logical_date=True", "yes"),
        ("week_day={'Saturday', 'Sunday'}, use_task_logical_date=True", "no"),
        ("week_day=[WeekDay.TUESDAY], use_task_execution_day=True", "yes"),
        ("week_day=list(WeekDay)", "yes"),
    ],
)
def test_a_branch_by_the_day_of_the_week(flow, arguments, expected):
    assert followed(flow, "BranchDayOfWeekOperator", arguments) == (expected,)


@pytest.mark.parametrize(
    ("begun_ago", "next_ends_in", "goes_on"),
    [(60, 60, True), (7200, -60, False), (-60, 3600, False), (60, None, True)],
)
def test_only_the_newest_run_goes_on(project, begun_ago, next_ends_in, goes_on):
    now = datetime.now(UTC)
    result = latest(project, "scheduled", now - timedelta(seconds=begun_ago), next_ends_in)
    assert result.followed == (("after",) if goes_on else ())


def test_a_run_that_was_started_by_hand_goes_on(project):
    assert latest(project, "manual", datetime(2020, 1, 1, tzinfo=UTC), -60).followed == ("after",)


def latest(project, run_type, logical_time, next_ends_in):
    project.load(
        FLOW.replace("{options}", "").replace(
            "{body}", "    LatestOnlyOperator(task_id='l') >> EmptyOperator(task_id='after')"
        )
    )
    ends = None if next_ends_in is None else datetime.now(UTC) + timedelta(seconds=next_ends_in)
    project.engine._get_following_slot = lambda: None if ends is None else {"interval_end": ends.isoformat()}
    return project.run("l", logical_time=logical_time, run_type=run_type)


# ---- conditions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("decorator", "outcome"),
    [
        ("@task.run_if(lambda context: context['ds'] == '2026-02-03')", "success"),
        ("@task.run_if(lambda context: False)", "skipped"),
        ("@task.skip_if(lambda context: True)", "skipped"),
        ("@task.skip_if(lambda context: False)", "success"),
        ("@task.run_if(lambda context: True)\n@task.skip_if(lambda context: True)", "skipped"),
    ],
)
@pytest.mark.parametrize("flavour", ["@task", "@task.bash"])
def test_conditions_are_looked_at_before_the_task_runs(flow, decorator, flavour, outcome):
    assert flow(f"{decorator}\n{flavour}\ndef f():\n    return 'true'\nf()").run("f").outcome == outcome


def test_a_condition_says_why_and_keeps_the_hook_that_was_there(flow, caplog):
    body = """
@task.run_if(lambda context: {condition}, skip_message="not today")
@task(pre_execute=lambda context: context.update(seen="hook"))
def f(**context):
    return context["seen"]
f()
"""
    project = flow(body.replace("{condition}", "True"))
    assert project.value(project.run("f")) == "hook"
    with caplog.at_level("INFO"):
        flow(body.replace("{condition}", "False")).run("f")
    assert "skipped: not today" in caplog.text


def test_a_condition_stands_above_the_task(flow):
    with pytest.raises(Exception, match=r"@task\.run_if stands above @task"):
        flow("@task\n@task.run_if(lambda context: True)\ndef f(): pass")


# ---- e-mail and music ---------------------------------------------------------------------------------------------


def test_an_email_is_rendered_and_sent(flow):
    with closing(MailBox()) as box:
        project = flow("""
EmailOperator(task_id="mail", to="a@x.org; b@x.org", cc=["c@x.org"], subject="done {{ ds }}",
              html_content="<b>{{ run_id }}</b>", from_email="me@x.org", conn_id="post",
              custom_headers={"X-Run": "{{ run_id }}"})
""")
        project.engine.connections["post"] = {
            "conn_type": "smtp",
            "host": "127.0.0.1",
            "port": box.port,
            "extra": '{"disable_ssl": true, "disable_tls": true}',
        }
        result = project.run("mail")
        assert result.outcome == "success", result.error
        text = "\n".join(map(str, box.messages))
    for words in ("done 2026-02-03", "<b>manual__1</b>", "a@x.org", "c@x.org", "X-Run: manual__1"):
        assert words in text


def test_smooth(flow):
    assert flow("SmoothOperator(task_id='s')").run("s").outcome == "success"


# ---- another Python -----------------------------------------------------------------------------------------------

HERE = f"python={sys.executable!r}"


def test_a_function_runs_in_another_python_with_its_arguments(flow, capfd):
    project = flow(f"""
@task.external_python({HERE}, string_args=["s1"], env_vars={{"MINE": "yes"}})
def f(x, when, *, ds, params, logical_date=None):
    import os, decimal
    print("hello from", os.environ["MINE"], virtualenv_string_args)
    assert logical_date.year == 2026 and __name__ == "__main__"
    return {{"x": x, "day": when, "ds": ds, "pid": os.getpid(), "d": decimal.Decimal("1.5"), "t": (1, {{2}})}}
f({{"k": [1, None]}}, when=date(2026, 2, 3))
""")
    result = project.run("f")
    assert result.outcome == "success", result.error
    value = project.value(result)
    assert (value["x"], value["ds"], value["day"]) == (
        {"k": [1, None]},
        "2026-02-03",
        {"__type": "date", "__value": "2026-02-03"},
    )
    assert value["t"]["__type"] == "tuple" and value["d"]["__type"] == "decimal"
    assert value["pid"] != os.getpid()
    assert "hello from yes ['s1']" in capfd.readouterr().out


@pytest.mark.parametrize("serializer", ["pickle", "json"])
def test_the_serializer_is_the_users_choice(flow, serializer):
    project = flow(f"""
@task.external_python({HERE}, serializer="{serializer}")
def f(x):
    return {{"same": x, "more": complex(1, 2)}} if isinstance(x, complex) else x
f(complex(1, 2) if "{serializer}" == "pickle" else 5)
""")
    result = project.run("f")
    if serializer == "json":
        assert project.value(result) == 5
    else:
        # It arrived in this process; as a result of the task it has no JSON form.
        assert "got: builtins.complex" in result.error.message


@pytest.mark.parametrize(
    ("body", "arguments", "outcome", "words"),
    [
        ("raise ValueError('bad')", "", "failed", "the function of task `f` raised ValueError: bad"),
        ("import sys; sys.exit(3)", "", "failed", "the function of task `f` exited with 3, expected 0"),
        ("import sys; sys.exit(3)", "skip_on_exit_code=3", "skipped", ""),
        ("import sys; sys.exit(3)", "skip_on_exit_code=[2, 3]", "skipped", ""),
        ("import os; os.kill(os.getpid(), 9)", "", "failed", "was killed by signal 9"),
        ("return object()", "", "failed", "got: builtins.object; with another serializer"),
        ("return None", "", "success", ""),
    ],
)
def test_how_a_call_elsewhere_ends(flow, body, arguments, outcome, words, capfd):
    result = flow(f"@task.external_python({HERE}, {arguments})\ndef f():\n    {body}\nf()").run("f")
    assert result.outcome == outcome
    assert words in (result.error.message if result.error else "")


def test_a_traceback_from_elsewhere_names_the_lines_of_the_file(flow, capfd):
    flow(f"x = 1\n@task.external_python({HERE})\ndef f():\n    y = 2\n    raise ValueError('bad')\nf()").run("f")
    shown = capfd.readouterr().out
    assert 'flow.py", line 18, in f' in shown
    assert "outside_program" not in shown


def test_a_branch_in_another_python(flow):
    project = flow(f"""
@task.branch_external_python({HERE})
def f():
    return "yes"
f() >> [EmptyOperator(task_id="yes"), EmptyOperator(task_id="no")]
""")
    assert project.run("f").followed == ("yes",)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (f"ExternalPythonOperator(task_id='f', {HERE}, python_callable=lambda: 1)", "a function made by def"),
        (f"def g(): yield 1\nExternalPythonOperator(task_id='f', {HERE}, python_callable=g)", "uses yield"),
        (
            f"def g(): pass\nExternalPythonOperator(task_id='f', {HERE}, python_callable=g, serializer='pickel')",
            "got: 'pickel', did you mean `pickle`?",
        ),
    ],
)
def test_what_cannot_run_elsewhere(flow, line, words):
    with pytest.raises(Exception) as raised:
        flow(line)
    assert words in str(raised.value)


def test_an_interpreter_that_is_not_there(flow):
    result = flow("@task.external_python(python='/nowhere/python')\ndef f(): pass\nf()").run("f")
    assert "an interpreter that is there, got: `/nowhere/python`" in result.error.message


def wheel(folder, name, code):
    """A package that can be installed without a network."""
    path = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}.py", code)
        archive.writestr(f"{name}-1.0.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(
            f"{name}-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{name}-1.0.dist-info/RECORD", "")
    return path


def test_a_virtual_environment_is_made_with_its_packages_and_kept_if_asked(flow, tmp_path, capfd):
    package = wheel(tmp_path, "headrace_toy", "WORD = 'toy'\n")
    body = f"""
@task.virtualenv(requirements=[{str(package)!r}], system_site_packages=False,
                 pip_install_options=["--no-index"], venv_cache_path={str(tmp_path / "cache")!r})
def f():
    import sys, headrace_toy
    return [headrace_toy.WORD, sys.prefix]
f()
"""
    first, second = (project_value(flow(body)) for _ in range(2))
    assert first == second
    assert first[0] == "toy" and first[1].startswith(str(tmp_path / "cache" / "venv-"))


def test_a_virtual_environment_gets_the_serializer_that_both_sides_need(flow, tmp_path, monkeypatch, capfd):
    code = "from pickle import dump, dumps, load, loads\nIS_TOY = True\n"
    wheel(tmp_path, "dill", code)
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "dill.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path / "here")
    monkeypatch.delitem(sys.modules, "dill", raising=False)
    project = flow(f"""
@task.virtualenv(serializer="dill", system_site_packages=False,
                 pip_install_options=["--no-index", "--find-links", {str(tmp_path)!r}])
def f(number):
    import dill
    return [number, dill.IS_TOY]
f(5)
""")
    assert project_value(project) == [5, True]
    sys.modules.pop("dill", None)


def test_a_virtual_environment_is_gone_afterwards(flow, capfd):
    project = flow("""
@task.virtualenv(system_site_packages=False)
def f():
    import sys
    return sys.prefix
f()
""")
    folder = project.value(project.run("f"))
    assert "headrace-venv-" in folder and not os.path.exists(folder)


def test_a_package_index_may_be_a_connection(flow, tmp_path, capfd):
    """The index is a folder on disk here, which is enough to see that it is asked."""
    wheel(tmp_path, "headrace_toy", "WORD = 'toy'\n")
    (tmp_path / "simple" / "headrace-toy").mkdir(parents=True)
    file = "headrace_toy-1.0-py3-none-any.whl"
    (tmp_path / file).rename(tmp_path / "simple" / "headrace-toy" / file)
    (tmp_path / "simple" / "headrace-toy" / "index.html").write_text(f'<a href="{file}">{file}</a>')
    with serving(tmp_path, {"Authorization": "Basic bWU6cC93"}) as port:
        project = flow("""
@task.virtualenv(requirements=["headrace-toy"], system_site_packages=False, index_urls_from_connection_ids="mine")
def f():
    import headrace_toy
    return headrace_toy.WORD
f()
""")
        host = f"http://127.0.0.1:{port}/simple"
        project.engine.connections["mine"] = {
            "conn_type": "package_index",
            "host": host,
            "login": "me",
            "password": "p/w",
        }
        assert project_value(project) == "toy"


@contextmanager
def serving(folder, headers):
    """A web server for a folder that wants to see these headers."""

    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=str(folder))

        def do_GET(self):
            if any(self.headers.get(name) != value for name, value in headers.items()):
                self.send_response(401)
                self.send_header("WWW-Authenticate", "Basic")
                self.end_headers()
            else:
                super().do_GET()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def test_packages_that_cannot_be_installed(flow, tmp_path, capfd):
    result = flow(f"@task.virtualenv(requirements='{tmp_path}/no.whl')\ndef f(): pass\nf()").run("f")
    assert "could not make the virtual environment of task `f`" in result.error.message


def project_value(project):
    result = project.run("f")
    assert result.outcome == "success", result.error
    return project.value(result)
