"""The plugins folder of an Airflow home: modules that files import, and macros for templates."""

from __future__ import annotations

import sys

import pytest

from headrace.authoring.dag.macros import Macros
from headrace.authoring.dag.plugin_folder import plugin_macros

OPERATOR = """
from airflow.models import BaseOperator
from airflow.utils.decorators import apply_defaults
class CountingOperator(BaseOperator):
    @apply_defaults
    def __init__(self, checks=(), *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.checks = checks
    def execute(self, context):
        return len(self.checks)
"""
PLUGIN = """
from airflow.plugins_manager import AirflowPlugin
import shop_operators_of_this_test
def fiscal_year(ds):
    return int(ds[:4]) + (int(ds[5:7]) >= 10)
class ShopPlugin(AirflowPlugin):
    name = "shop"
    operators = [shop_operators_of_this_test.CountingOperator]
    macros = [fiscal_year]
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An Airflow home with a plugins folder, seen by this process."""
    plugins = tmp_path / "airflow" / "plugins"
    (plugins / "shop_operators_of_this_test").mkdir(parents=True)
    (plugins / "shop_operators_of_this_test" / "__init__.py").write_text(OPERATOR)
    (plugins / "shop_plugin.py").write_text(PLUGIN)
    (plugins / "broken.py").write_text("class AirflowPlugin: ...\nraise ValueError('broken')\n")
    monkeypatch.setenv("AIRFLOW_HOME", str(plugins.parent))
    monkeypatch.setattr(sys, "path", list(sys.path))
    plugin_macros.cache_clear()
    yield plugins.parent
    plugin_macros.cache_clear()
    sys.modules.pop("shop_operators_of_this_test", None)


def test_files_import_what_lies_in_the_plugins_folder(project, home):
    (home / "config").mkdir()
    (home / "config" / "shop_config_of_this_test.py").write_text("NAME = 'shop'\n")
    found = project.load(
        """
        from airflow import DAG
        from shop_config_of_this_test import NAME
        from shop_operators_of_this_test import CountingOperator
        with DAG(NAME):
            CountingOperator(task_id="count", checks=["a", "b"])
        """
    )
    assert found.dags["shop"].task_dict["count"].execute({}) == 2


def test_another_plugins_folder_may_be_configured(project, home, monkeypatch):
    (home / "plugins").rename(home / "others")
    monkeypatch.setenv("AIRFLOW__CORE__PLUGINS_FOLDER", str(home / "others"))
    source = "from airflow import DAG\nfrom shop_operators_of_this_test import CountingOperator\nDAG('x')\n"
    assert project.load(source + "d = DAG('d')\n").dags.keys() == {"d"}


def test_templates_have_the_macros_of_plug_ins_and_a_broken_one_costs_only_itself(project, home, caplog):
    project.load("from airflow import DAG\nd = DAG('d')\n")
    assert Macros().shop.fiscal_year("2026-10-03") == 2027
    with pytest.raises(AttributeError, match="there is no macro `nothing`"):
        _ = Macros().nothing
    (warning,) = [one.getMessage() for one in caplog.records if one.name == "headrace.plugins"]
    assert warning.endswith("broken.py` could not be loaded: ValueError: broken")
