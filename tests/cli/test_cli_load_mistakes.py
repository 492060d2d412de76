"""Mistakes in files that are found when the file is loaded."""

from __future__ import annotations

import pytest

from headrace.authoring.dig.operator_names import UNSUPPORTED, known_operators
from headrace.operators.dig.registry import find_operator


@pytest.mark.parametrize(
    ("operator", "text"),
    [("shh", "did you mean `sh>`?"), ("s3_copy", "operator `s3_copy>` is not supported (`")],
)
def test_an_operator_that_nobody_can_run(headrace, operator, text):
    done = headrace("run", headrace.write("main.dig", f"+a:\n  sh>: 'true'\n+b:\n  {operator}>: x\n"))
    assert (done.returncode, text in done.err, "main.dig:4" in done.err) == (2, True, True), done.err


def test_files_may_name_what_can_run_and_nothing_else():
    assert all(find_operator(name) for name in known_operators())
    assert known_operators().isdisjoint(UNSUPPORTED)


def test_a_provider_that_is_missing_is_named_in_full(headrace):
    path = "airflow.providers.postgres.operators.postgres"
    done = headrace("run", headrace.write("flow.py", f"from {path} import PostgresOperator"))
    assert f"`{path}`: Airflow's provider `postgres` is not installed" in done.err
