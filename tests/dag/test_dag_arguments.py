"""Arguments of DAGs and tasks: what is refused and how, and what people see of the rest."""

from __future__ import annotations

import pytest

from headrace.errors import LoadError

HEAD = """
from datetime import timedelta
from airflow.sdk import DAG, Label, TaskGroup, dag, task, chain
from airflow.operators.empty import EmptyOperator
"""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("max_active_run=1", "DAG `d` has no argument `max_active_run`, did you mean `max_active_runs`?"),
        ("max_active_runs='2'", "expected `max_active_runs` of DAG `d` to be a whole number, got: '2'"),
        ("dagrun_timeout=5", "expected `dagrun_timeout` of DAG `d` to be a timedelta, got: 5"),
        ("tags='etl'", "expected `tags` of DAG `d` to be a list of texts"),
        ("tags=['x' * 101]", "to have at most 100 characters"),
        (
            "owner_links={'me': 'page'}",
            "expected the link of owner `me` of DAG `d` to be a URL or `mailto:`, got: `page`",
        ),
        ("default_args=[1]", "expected `default_args` of DAG `d` to be a dict"),
    ],
)
def test_wrong_arguments_are_told_with_their_line(project, arguments, message):
    with pytest.raises(LoadError) as caught:
        project.load(HEAD + f"with DAG('d', {arguments}): pass")
    assert message in caught.value.message
    assert caught.value.line == 5


def test_what_people_see_is_part_of_the_definition(project):
    project.write("# How it works", "how.md")
    workflow = project.workflow(
        HEAD
        + """
with DAG("d", dag_display_name="Daily", doc_md="how.md", owner_links={"me": "https://example.com"},
         default_args={"owner": "me"}):
    with TaskGroup("g"):
        a = EmptyOperator(task_id="a", task_display_name="First", doc_rst="text")
    @task(task_display_name="Second", map_index_template="{{ x }}")
    def b(x):
        "What b does."
    a >> Label("if it rains") >> b.expand(x=[1])
"""
    )
    nodes = {node.key: node for node in workflow.nodes}
    assert (workflow.display_name, workflow.doc, workflow.owner) == ("Daily", "# How it works", "me")
    assert workflow.owner_links == {"me": "https://example.com"}
    assert (nodes["g.a"].display_name, nodes["g.a"].group, nodes["g.a"].doc) == ("First", "g", "text")
    assert (nodes["b"].display_name, nodes["b"].doc, nodes["b"].map_index_template) == (
        "Second",
        "What b does.",
        "{{ x }}",
    )
    assert nodes["b"].edge_labels == {"g.a": "if it rains"}


def test_a_docs_file_elsewhere_is_not_read(project, tmp_path):
    (tmp_path.parent / "secret.md").write_text("secret")
    workflow = project.workflow(HEAD + "with DAG('d', doc_md='../secret.md'): pass")
    assert workflow.doc == "../secret.md"


def test_the_docstring_of_a_dag_function_documents_it(project):
    assert project.workflow(HEAD + "@dag\ndef d():\n    'About d.'\nd()").doc == "About d."
