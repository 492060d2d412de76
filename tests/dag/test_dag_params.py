"""Parameters with schemas: checked when a file is loaded, when a run is started, and in the task."""

from __future__ import annotations

import pytest

from headrace.actions.params import check_params
from headrace.authoring.dag.exceptions import ParamValidationError
from headrace.authoring.dag.params import Param, ParamsDict
from headrace.errors import DefinitionError, UsageError

HEAD = "from airflow.sdk import DAG, Param, dag, task\nfrom datetime import datetime\n"


@pytest.mark.parametrize(
    ("param", "problem"),
    [
        (Param("5", type="integer"), "expected integer, got: '5'"),
        (Param(True, type="integer"), "expected integer, got: True"),
        (Param(None, type=["string", "integer"]), "expected string or integer, got: None"),
        (Param("x", enum=["a", "b"]), r"expected one of \['a', 'b'\], got: 'x'"),
        (Param(3, minimum=4), "expected at least 4, got: 3"),
        (Param("ab", maxLength=1), "expected at most 1 characters, got: 'ab'"),
        (Param("2026-13-01", type="string", format="date"), "expected something of the format `date`"),
        (Param("noon", type="string", format="date-time"), "expected something of the format `date-time`"),
        (Param(["a", 1], type="array", items={"type": "string"}), r"expected string at \[1\], got: 1"),
        (Param({"a": 1}, type="object", required=["b"]), "'b' is a required property"),
        (Param(), "it has no value"),
    ],
)
def test_what_is_wrong_with_a_value_is_told(param, problem):
    with pytest.raises(ParamValidationError, match=problem):
        param.resolve()
    assert param.resolve(suppress_exception=True) is None


@pytest.mark.parametrize(
    "param",
    [
        Param("2026-02-03T04:05:06+00:00", type="string", format="date-time"),
        Param((1, 2), type="array"),
        Param(None, type=["null", "string"], title="T", section="S", description_md="*d*"),
        Param("free", examples=["a"], values_display={"a": "A"}),
        Param("x", schema={"type": "string"}),
    ],
)
def test_good_values_pass(param):
    assert param.resolve() == param.value


def test_a_plain_value_over_a_param_keeps_its_schema():
    params = ParamsDict({"n": Param(1, "how many", type="integer")})
    params["n"] = 2
    assert (params["n"], params.get_param("n").description) == (2, "how many")
    with pytest.raises(ParamValidationError, match="parameter `n` is not valid: expected integer, got: 'x'"):
        params["n"] = "x"
    assert dict(params.items()) == {"n": 2}


def test_schemas_and_required_parameters_are_part_of_the_definition(project):
    workflow = project.workflow(
        HEAD
        + "with DAG('d', params={'n': Param(1, 'how many', type='integer'), 'x': Param(type='string'), 'y': 2}): pass"
    )
    assert workflow.params == {"n": 1, "y": 2}
    assert workflow.param_schemas == {"n": {"description": "how many", "type": "integer"}, "x": {"type": "string"}}


def test_labels_of_values_may_have_numbers_as_keys(project):
    workflow = project.workflow(
        HEAD + "with DAG('d', params={'n': Param(1, values_display={1: 'one', None: 'x'})}): pass"
    )
    assert workflow.param_schemas == {"n": {"values_display": {"1": "one", "null": "x"}}}


@pytest.mark.parametrize(
    ("params", "problem"),
    [
        ("{'n': Param(type='integer')}", "parameter `n` of DAG `d` is not valid: it has no default"),
        ("{'n': Param('x', type='integer')}", "expected integer, got: 'x'"),
        ("{'n': Param(1, type='number!')}", "parameter `n` of DAG `d` is not valid: 'number!' is not valid"),
    ],
)
def test_a_scheduled_dag_needs_good_defaults(project, params, problem):
    with pytest.raises(DefinitionError, match=problem):
        project.load(HEAD + f"with DAG('d', schedule='@daily', start_date=datetime(2026, 1, 1), params={params}): pass")


def test_a_run_is_not_started_with_wrong_parameters(project):
    workflow = project.workflow(HEAD + "@dag(schedule=None)\ndef d(n: int, m=Param(1, type='integer')): pass\nd()")
    check_params(workflow, {"n": 1, "m": 2, "other": "x"})
    with pytest.raises(UsageError, match="parameter `n` of workflow `d` is not valid: it has no value and no default"):
        check_params(workflow, {})
    with pytest.raises(UsageError, match="parameter `m` of workflow `d` is not valid: expected integer, got: 'x'"):
        check_params(workflow, {"n": 1, "m": "x"})


def test_the_task_sees_merged_parameters_and_they_are_checked(project):
    project.load(
        HEAD
        + "with DAG('d', params={'a': Param(1, type='integer'), 'b': 1, 'c': 1}):\n"
        + "    @task(params={'b': 2, 'c': 2})\n    def f(params): return dict(params)\n    f()"
    )
    assert project.value(project.run("f", conf={"c": 3, "d": 4})) == {"a": 1, "b": 2, "c": 3, "d": 4}
    result = project.run("f", conf={"a": "x"})
    assert (result.outcome, result.is_retryable) == ("failed", True)
    assert "parameter `a` is not valid: expected integer, got: 'x'" in result.error.message
