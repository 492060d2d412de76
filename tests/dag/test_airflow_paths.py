"""Airflow's import paths lead to our classes."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import headrace
from headrace.compat.airflow import install
from headrace.compat.airflow.moved import MOVED
from headrace.compat.airflow.paths import PATHS

install()


@pytest.mark.parametrize("path", sorted(PATHS))
def test_every_name_in_the_table_exists(path):
    module = importlib.import_module(path)
    for name in PATHS[path]:
        assert hasattr(module, name)


def test_old_and_new_spellings_are_one_object():
    from airflow import DAG
    from airflow.models import DAG as old
    from airflow.operators.dummy import DummyOperator
    from airflow.operators.python import PythonOperator as old_python
    from airflow.providers.standard.operators.empty import EmptyOperator
    from airflow.providers.standard.operators.python import PythonOperator
    from airflow.sdk import DAG as new

    assert DAG is old is new is headrace.DAG
    assert PythonOperator is old_python is headrace.PythonOperator
    assert DummyOperator is EmptyOperator


def test_modules_can_be_imported_as_modules():
    import airflow.operators.bash
    from airflow.utils import trigger_rule

    assert airflow.operators.bash.BashOperator is headrace.BashOperator
    assert trigger_rule.TriggerRule.ALL_DONE == "all_done"
    assert airflow.__version__


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("from airflow.sdk import DAGG", "cannot import `DAGG` from `airflow.sdk`: the nearest known name is `DAG`"),
        ("from airflow.sdk import BashOperator", "it is in `airflow.operators.bash`"),
        ("from airflow.operators import bashh", "nearest known name is `bash`"),
        ("import airflow.providers.nothing_like_it", "provider `nothing-like-it` is not installed"),
        ("from airflow.operators.bash import Nothing", "Headrace has no such name"),
        (
            "from airflow.operators.postgres_operator import PostgresOperator",
            "cannot import `postgres_operator` from `airflow.operators`: Airflow has moved it to"
            " `airflow.providers.common.sql.operators.sql`",
        ),
        ("from airflow.operators.subdag import SubDagOperator", "task groups take their place"),
        (
            "from airflow.contrib.sensors.file_sensor import FileSensor",
            "moved what was in there to `airflow.providers`",
        ),
    ],
)
def test_unknown_names_are_explained(statement, words):
    with pytest.raises(ImportError) as raised:
        exec(statement)
    assert words in str(raised.value)


def test_packages_have_what_is_in_them():
    """As in `import airflow`, and then `airflow.utils.dates`; in a process that has imported nothing of it before."""
    program = (
        "from headrace.compat.airflow import install\ninstall()\nimport airflow\n"
        "print(airflow.utils.dates.days_ago(1).hour, airflow.models.DAG is airflow.DAG, hasattr(airflow, 'nothing'))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout == "0 True False\n"


def test_nothing_that_has_moved_is_still_in_the_table():
    assert set(MOVED).isdisjoint(PATHS)


def test_missing_attributes_are_attribute_errors():
    import airflow.sdk

    assert getattr(airflow.sdk, "nothing", 3) == 3


def test_ours_wins_over_an_installed_airflow(tmp_path):
    (tmp_path / "airflow").mkdir()
    (tmp_path / "airflow" / "__init__.py").write_text("REAL = True")
    code = "from headrace.compat.airflow import install; install(); import airflow; print(hasattr(airflow, 'REAL'))"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_public_face_is_sorted_and_complete():
    assert headrace.__all__ == sorted(headrace.__all__)
    for name in headrace.__all__:
        assert getattr(headrace, name) is not None
    with pytest.raises(AttributeError):
        headrace.nothing  # noqa: B018


@pytest.mark.parametrize(
    ("imports", "unwanted"),
    [
        (
            "headrace.runner.python_task, headrace.operators.bash, headrace.operators.branch, headrace.operators.empty",
            {"jinja2", "pendulum", "yaml", "sqlalchemy", "click", "asyncio"},
        ),
        ("headrace.definition", {"headrace.authoring", "jinja2", "pendulum", "importlib.metadata"}),
    ],
)
def test_imports_stay_small(imports, unwanted):
    code = f"import sys, {imports}; print(sorted(set(sys.modules) & {unwanted!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
