"""The examples of `examples/mission` compile to what they say, and run."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.authoring.dag.loading import load_dag_file
from headrace.testing.engine import Engine

MISSION = Path(__file__).parents[2] / "examples/mission"


def test_arrows_and_methods_draw_the_same_graph():
    arrows, methods = load_dag_file(MISSION, "relations.py").workflows
    drawn = {node.key: node.upstream for node in arrows.nodes[1:]}
    assert drawn == {
        "first_task": (),
        "second_task": ("first_task",),
        "third_task": ("second_task",),
        "fourth_task": ("second_task",),
    }
    assert {node.key: node.upstream for node in methods.nodes[1:]} == drawn


def test_related_tasks_run_in_their_order(tmp_path):
    engine = Engine(tmp_path)
    for name, run in engine.start_dags((MISSION / "relations.py").read_text()).items():
        engine.settle()
        assert (run.state, set(run.states().values())) == ("success", {"success"}), name
    engine.close()


@pytest.mark.parametrize("version", ["airflow2", "airflow3"])
def test_the_sleeping_dag_is_the_same_in_both_versions(version):
    (workflow,) = load_dag_file(MISSION / version, "sleep_dag.py").workflows
    (task,) = workflow.nodes[1:]
    assert (workflow.name, workflow.schedule, workflow.warnings) == ("sleep_dag", None, ())
    assert (task.key, task.operator, task.config["bash_command"]) == ("sleep_10_minutes", "bash", "sleep 600")
