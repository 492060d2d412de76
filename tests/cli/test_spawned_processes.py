"""Processes that a task starts by `multiprocessing` find its DAG file, however they are started."""

from __future__ import annotations

import pytest

FLOW = """
    import multiprocessing
    from airflow.sdk import DAG, task
    import beside

    def square(number):
        return number * number

    with DAG("flow", schedule=None):
        @task
        def squares():
            with multiprocessing.get_context("{method}").Pool(1) as pool:
                print(pool.map(square, [1, 2, 3]), pool.map(beside.cube, [2]))

        squares()
"""


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_functions_of_a_dag_file_work_in_processes_that_were_not_forked(headrace, method):
    headrace.write("beside.py", "from airflow.sdk import Variable\n\ndef cube(number):\n    return number ** 3\n")
    done = headrace("run", headrace.write("flow.py", FLOW.format(method=method)))
    assert (done.returncode, done.out) == (0, "[1, 4, 9] [8]\n"), done.err
