"""What real task processes print and render shows no secret, wherever it came from, nor how to open the store."""

from __future__ import annotations

from headrace.testing.project import Project

DAG_FILE = """
import os
from airflow.hooks.base import BaseHook
from airflow.models import Variable
from airflow.operators.bash import BashOperator
from airflow.sdk import DAG
with DAG("masked") as dag:
    BashOperator(
        task_id="show",
        bash_command="echo $A $B $C $D; env | grep -e ^HEADRACE_STORE -e SQL_ALCHEMY",
        env={
            "A": "{{ var.value.api_token }}",
            "B": "{{ conn.db.password }}",
            "C": "{{ var.value.vault_secret }}",
            "D": "{{ var.json.settings.password }}",
        },
        append_env=True,
    )
"""
BACKEND = """
from airflow.secrets import BaseSecretsBackend
class Vault(BaseSecretsBackend):
    def get_variable(self, key, team_name=None):
        return "from-the-vault" if key == "vault_secret" else None
    def get_conn_value(self, conn_id, team_name=None):
        return None
"""


def test_values_of_the_environment_and_of_backends_are_masked(tmp_path):
    store = "postgresql://app:store-password@127.0.0.1:1/none"
    project = Project(
        tmp_path,
        {
            "AIRFLOW_VAR_API_TOKEN": "token-of-env",
            "AIRFLOW_CONN_DB": "postgres://u:conn-password@host/db",
            "AIRFLOW_VAR_SETTINGS": '{"password": "inner-password"}',
            "AIRFLOW__SECRETS__BACKEND": "my_vault.Vault",
            "HEADRACE_STORE": store,
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": store,
        },
    )
    project.write("flow.py", DAG_FILE)
    project.write("my_vault.py", BACKEND)
    project.run("run", "flow.py").check()
    reader = Project(tmp_path)  # the store of the other one is not there
    log, rendered = reader.run("logs", "latest", "show").check().out, reader.run("rendered", "latest", "show").check()
    assert "*** *** *** ***" in log
    assert rendered.out.count("***") >= 4
    bare = "postgresql://app@127.0.0.1:1/none"
    assert f"HEADRACE_STORE={bare}" in log and f"AIRFLOW__DATABASE__SQL_ALCHEMY_CONN={bare}" in log
    for secret in ("token-of-env", "conn-password", "from-the-vault", "inner-password", "store-password"):
        assert secret not in log + rendered.out
