"""`executor_config` and `executor` are kept as data, whatever executor will read them."""

from __future__ import annotations

import pytest

SOURCE = """
from airflow.sdk import DAG, task

class Container:
    attribute_map = {{"image": "image", "image_pull_policy": "imagePullPolicy"}}
    image, image_pull_policy = "python:3.12", None

class Pod:
    attribute_map = {{"containers": "containers", "host_network": "hostNetwork"}}
    containers, host_network = [Container()], True

with DAG("flow", schedule=None):
    @task({options})
    def work():
        pass
    work()
"""


def compiled(project, options):
    project.load(SOURCE.format(options=options))
    (workflow,) = project.file.workflows
    return workflow


def test_the_old_form_is_kept_as_it_is(project):
    options = {"KubernetesExecutor": {"image": "x", "request_cpu": 2, "env_vars": {"A": "1"}}}
    workflow = compiled(project, f"executor_config={options!r}, executor='kubernetes', queue='gpu'")
    node = workflow.nodes[1]
    assert (node.executor_options, node.executor, node.queue) == (options, "kubernetes", "gpu")
    assert workflow.warnings == ("`executor` of task `work` has no effect: tasks run on the executor of their agent",)


def test_a_pod_becomes_what_it_stands_for(project):
    node = compiled(project, "executor_config={'pod_override': Pod()}").nodes[1]
    assert node.executor_options == {
        "pod_override": {"containers": [{"image": "python:3.12"}], "hostNetwork": True},
    }


def test_a_name_that_no_executor_knows_is_told_and_breaks_nothing(project):
    workflow = compiled(project, "executor_config={'KubernetesExecutor': {'imag': 'x'}}")
    (warning,) = workflow.warnings
    assert warning.startswith("`imag` in `executor_config` of task `work` has no effect")
    assert "image" in warning


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("{'KubernetesExecutor': {}, 'pod_override': {}}", "has both `pod_override` and `KubernetesExecutor`"),
        ("{'KubernetesExecutor': 3}", "to be a dict, got: 3"),
    ],
)
def test_a_form_that_cannot_be_meant_is_refused(project, config, message):
    with pytest.raises(Exception, match=message):
        _ = compiled(project, f"executor_config={config}").nodes
