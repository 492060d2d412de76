"""Modules that Airflow's examples import from inside Airflow's package, found beside the DAG files."""

from __future__ import annotations

from headrace.projects.parsing import parse_file

FLOW = """
from airflow.example_dags.plugins.heavy import Heavy
from airflow.example_dags.libs.texts import GREETING
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG

with DAG("flow", schedule=None, description=GREETING):
    EmptyOperator(task_id="t", weight_rule=Heavy())
"""

HEAVY = """
from airflow.plugins_manager import AirflowPlugin
from airflow.task.priority_strategy import PriorityWeightStrategy

class Heavy(PriorityWeightStrategy):
    def get_weight(self, ti):
        return 77

class HeavyPlugin(AirflowPlugin):
    name = "heavy"
    priority_weight_strategies = [Heavy]
"""


def test_folders_of_the_project_stand_for_those_of_airflow(tmp_path):
    (tmp_path / "flow.py").write_text(FLOW)
    for file, text in {
        "plugins/heavy.py": HEAVY,
        "libs/__init__.py": "",
        "libs/texts.py": "GREETING = 'hello'",
    }.items():
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(text)
    parsed = parse_file(tmp_path, "flow.py")
    assert parsed.error is None
    (workflow,) = parsed.workflows
    assert workflow.description == "hello"
    assert next(node for node in workflow.nodes if node.key == "t").priority == 77


def test_without_them_the_error_names_what_is_missing(tmp_path):
    (tmp_path / "flow.py").write_text(FLOW)
    error = parse_file(tmp_path, "flow.py").error
    assert "cannot import `plugins` from `airflow.example_dags`: Headrace has no such name" in error.message
    assert error.line == 2


def test_teams_of_assets_have_no_effect_and_that_is_said(tmp_path):
    (tmp_path / "flow.py").write_text(
        "from airflow.sdk import DAG, Asset, AssetAccessControl, task\n"
        "data = Asset('data', access_control=AssetAccessControl(producer_teams=['a'], allow_global=False))\n"
        "with DAG('flow', schedule=[data]):\n"
        "    @task(outlets=[data])\n"
        "    def work(): ...\n"
        "    work()\n"
    )
    (workflow,) = parse_file(tmp_path, "flow.py").workflows
    assert workflow.warnings == ("`access_control` of asset `data` has no effect: there are no teams here",)
