"""Airflow's provider packages as they are installed, without Airflow: found, extended, and explained if missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest


class Site:
    """A folder of installed packages, and programs that run with it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def module(self, path: str, source: str = "") -> None:
        """A module of a provider package; like the published ones, without any `__init__` above it."""
        file = self.folder.joinpath("airflow", "providers", *path.split(".")).with_suffix(".py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(dedent(source))

    def entry_point(self, provider: str, info: dict[str, object]) -> None:
        name = f"apache-airflow-providers-{provider}"
        self.module(f"{provider}.get_provider_info", f"def get_provider_info():\n    return {info!r}")
        dist = self.folder / f"{name.replace('-', '_')}-1.0.dist-info"
        dist.mkdir()
        (dist / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        target = f"airflow.providers.{provider}.get_provider_info:get_provider_info"
        (dist / "entry_points.txt").write_text(f"[apache_airflow_provider]\nprovider_info={target}\n")

    def run(self, program: str) -> str:
        start = f"import sys; sys.path.insert(0, {str(self.folder)!r})\n"
        start += "from headrace.compat.airflow import install; install()\n"
        command = [sys.executable, "-c", start + dedent(program)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else done.stderr


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


def test_modules_of_installed_providers_build_on_our_classes(site):
    site.module("sftp.sensors.sftp", "from airflow.sdk import BaseSensorOperator as Parent")
    site.module("common.sql.hooks.sql", "from airflow.sdk import BaseHook as Parent")
    assert (
        site.run(
            """
        from airflow.providers.common.sql.hooks.sql import Parent as hook
        from airflow.providers.sftp.sensors.sftp import Parent as sensor
        print(hook.__module__, sensor.__module__)
        """
        )
        == "headrace.authoring.dag.hooks headrace.operators.sensors.poking"
    )


def test_standard_operators_are_ours_even_if_the_package_is_installed(site):
    site.module("standard.operators.bash", "class BashOperator: pass")
    site.module("standard.hooks.package_index", "ORIGIN = 'installed'")
    assert (
        site.run(
            """
        from airflow.providers.standard.hooks.package_index import ORIGIN
        from airflow.providers.standard.operators.bash import BashOperator
        print(BashOperator.__module__, ORIGIN)
        """
        )
        == "headrace.operators.bash installed"
    )


def test_an_installed_provider_wins_over_what_we_have_of_it(site):
    program = "from airflow.providers.smtp.operators.smtp import EmailOperator; print(EmailOperator.__module__)"
    assert site.run(program) == "headrace.operators.email_operator"
    site.module("smtp.operators.smtp", "class EmailOperator: pass")
    assert site.run(program) == "airflow.providers.smtp.operators.smtp"


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (
            "from airflow.providers.cncf.kubernetes.operators.pod import KubernetesPodOperator",
            "Airflow's provider `cncf-kubernetes` is not installed; `headrace providers install cncf-kubernetes`",
        ),
        (
            "import airflow.providers.sftp.nothing",
            "cannot import `airflow.providers.sftp.nothing`: the installed provider `sftp` has no such module",
        ),
        ("from airflow.sdk import task; task.docker", "`@task.docker` comes with Airflow's provider `docker`"),
    ],
)
def test_what_is_missing_is_explained(site, statement, words):
    site.module("sftp.version_compat")
    assert words in site.run(statement)


DECORATOR = """
    from airflow.sdk import BaseOperator
    from airflow.sdk.bases.decorator import DecoratedOperator, determine_kwargs, task_decorator_factory

    class QueryOperator(BaseOperator):
        template_fields = ("query",)

        def __init__(self, *, query, **kwargs):
            super().__init__(**kwargs)
            self.query = query

        def execute(self, context):
            return f"asked: {self.query}"

    class QueryFunctionOperator(DecoratedOperator, QueryOperator):
        template_fields = (*DecoratedOperator.template_fields, *QueryOperator.template_fields)
        custom_operator_name = "@task.query"

        def __init__(self, **kwargs):
            super().__init__(query="", **kwargs)

        def execute(self, context):
            given = determine_kwargs(self.python_callable, self.op_args, {**context, **self.op_kwargs})
            self.query = self.python_callable(*self.op_args, **given)
            self.render_template_fields(context)
            return super().execute(context)

    def query_task(python_callable=None, **kwargs):
        return task_decorator_factory(
            python_callable=python_callable, decorated_operator_class=QueryFunctionOperator, **kwargs
        )
"""

DECORATED_DAG = """
    from airflow.sdk import DAG, task

    with DAG("asking", schedule=None) as dag:
        @task.query(retries=2)
        def ask(table, run_id):
            return f"select from {table} in {{{{ dag_run.conf.year }}}}" if run_id else ""

        ask("a")
        ask.override(task_id="more").expand(table=["b", "c"])
"""


def test_decorators_of_providers_make_tasks(site):
    site.entry_point(
        "asking",
        {
            "package-name": "apache-airflow-providers-asking",
            "task-decorators": [{"name": "query", "class-name": "airflow.providers.asking.decorators.query_task"}],
        },
    )
    site.module("asking.decorators", DECORATOR)
    told = site.run(
        dedent(DECORATED_DAG)
        + "print(); run = dag.test(run_conf={'year': 2026}); print(run.state, run.value('ask'), run.value('more'))"
    )
    asked = [f"asked: select from {table} in 2026" for table in "abc"]
    assert told.splitlines()[-1] == f"success {asked[0]} {asked[1:]}"


def test_source_of_a_decorated_function_has_no_decorators(site):
    site.module("asking.decorators", DECORATOR)
    site.module(
        "asking.dag",
        """
        from airflow.providers.asking.decorators import QueryFunctionOperator, query_task
        from airflow.sdk import DAG

        with DAG("asking") as dag:
            @query_task(
                retries=2,
            )
            def ask(table):
                # which one
                return table

            ask("a")
        """,
    )
    program = "from airflow.providers.asking.dag import dag; print(dag.get_task('ask').get_python_source())"
    assert site.run(program) == "def ask(table):\n    # which one\n    return table"


RENDERING = """
    from airflow.sdk import DAG, BaseNotifier, BaseOperator

    sent = []

    class Later(BaseOperator):
        template_fields = ("first", "message")
        times = 0

        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.first, self.message = "{{ 1 + 1 }}", "{{ answer | loud }}"

        def render_template_fields(self, context, jinja_env=None):
            environment = jinja_env or self.get_template_env()
            environment.filters["loud"] = str.upper
            fields = ["message"] if self.times else ["first"]
            self._do_render_template_fields(self, fields, context, environment, set())
            self.times += 1

        def execute(self, context):
            context["answer"] = "yes"
            self.render_template_fields(context)
            return [self.first, self.message]

    class Late(BaseNotifier):
        def notify(self, context):
            self.text = "{{ ti.task_id }} of {{ dag.dag_id }}"
            self._do_render_template_fields(self, ["text"], context, self.get_template_env(context["dag"]), set())
            sent.append(self.text)

    with DAG("late") as dag:
        Later(task_id="later", on_success_callback=Late())
    print(dag.test().value("later"), sent)
"""


def test_operators_and_notifiers_may_render_in_their_own_way(site):
    assert site.run(RENDERING).splitlines()[-1] == "['2', 'YES'] ['later of late']"


def test_operators_that_call_the_function_themselves_take_any_signature(site):
    program = """
        from airflow.sdk import DAG, BaseOperator
        from airflow.sdk.bases.decorator import task_decorator_factory

        class Finding(BaseOperator):
            def __init__(self, *, python_callable, op_args, op_kwargs, **kwargs):
                super().__init__(**kwargs)
                self.function = python_callable

            def execute(self, context):
                return self.function(["a", "b"])

        with DAG("finding") as dag:
            @task_decorator_factory(decorated_operator_class=Finding)
            def count(files):
                return len(files)

            count.override(task_id="other")()
        print(dag.test().value("other"))
        """
    assert site.run(program).splitlines()[-1] == "2"


def test_a_function_is_written_as_a_program_for_elsewhere(site, tmp_path):
    program = f"""
        import pickle, subprocess, sys
        from pathlib import Path
        from airflow.providers.standard.utils.python_virtualenv import write_python_script

        folder = Path({str(tmp_path)!r})
        (folder / "in").write_bytes(pickle.dumps({{"args": [6], "kwargs": {{"b": 7}}}}))
        source = "def times(a, b):\\n    return a * b\\n"
        names = {{"python_callable_source": source, "python_callable": "times", "pickling_library": "pickle"}}
        write_python_script(jinja_context={{**names, "op_args": [6]}}, filename=str(folder / "program.py"))
        words = [folder / "program.py", folder / "in", folder / "out", "none", folder / "error"]
        subprocess.run([sys.executable, *map(str, words)], check=True)
        print(pickle.loads((folder / "out").read_bytes()))
        """
    assert site.run(program) == "42"


def test_refuses_to_mix_with_an_airflow_that_was_imported_before(tmp_path):
    (tmp_path / "airflow.py").write_text("REAL = True")
    program = "import airflow\nfrom headrace.compat.airflow import install\ninstall()"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "Airflow itself has been imported in this process" in done.stderr
