"""`conf` and the aliases of settings: sources, spellings, types, and what is said about the rest."""

from __future__ import annotations

import enum
import os
import subprocess
import sys

import pytest

from headrace.airflow_config import notices, read_options, spellings
from headrace.airflow_config.aliases import alias_names
from headrace.authoring.dag.configuration import Configuration
from headrace.authoring.dag.exceptions import AirflowConfigException
from headrace.errors import SettingsError
from headrace.settings import load_settings


@pytest.fixture
def conf(monkeypatch):
    for name in ("AIRFLOW_HOME", "AIRFLOW_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    return Configuration()


def config_file(tmp_path, monkeypatch, text):
    (tmp_path / "airflow.cfg").write_text(text)
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path))


def test_the_environment_comes_before_the_file_and_the_defaults(conf, tmp_path, monkeypatch):
    assert conf.getint("core", "parallelism") == 32
    config_file(tmp_path, monkeypatch, "[core]\nparallelism = 5\ndags_folder = {AIRFLOW_HOME}/d\n[x]\npercent = 5%%\n")
    assert conf.getint("core", "parallelism") == 5
    assert conf.get("core", "dags_folder") == f"{tmp_path}/d"
    assert conf.get("core", "plugins_folder") == f"{tmp_path}/plugins"
    assert conf.get("x", "percent") == "5%"
    monkeypatch.setenv("AIRFLOW__CORE__PARALLELISM", "9")
    assert conf.getint("core", "parallelism") == 9
    monkeypatch.setenv("AIRFLOW__COMMON_IO__SOME_KEY", "dots")
    assert conf.get("common.io", "some_key") == "dots"


def test_old_and_new_spellings_are_one_option(conf, monkeypatch):
    monkeypatch.setenv("AIRFLOW__WEBSERVER__WEB_SERVER_PORT", "1234")
    assert conf.getint("api", "port") == conf.getint("webserver", "web_server_port") == 1234
    monkeypatch.setenv("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "x://")
    assert conf.get("core", "sql_alchemy_conn") == "x://"
    new = ("scheduler", "task_instance_heartbeat_timeout")
    assert set(spellings(*new)) == {new, ("scheduler", "scheduler_zombie_task_threshold")}


def test_sensitive_options_may_come_from_a_command(conf, tmp_path, monkeypatch):
    monkeypatch.setenv("AIRFLOW__SMTP__SMTP_PASSWORD_CMD", "echo from command")
    assert conf.get("smtp", "smtp_password") == "from command"
    monkeypatch.setenv("AIRFLOW__SMTP__SMTP_HOST_CMD", "echo no")
    assert conf.get("smtp", "smtp_host") == "localhost"
    monkeypatch.setenv("AIRFLOW__SMTP__SMTP_PASSWORD_CMD", "false")
    with pytest.raises(SettingsError, match="the command of `AIRFLOW__SMTP__SMTP_PASSWORD_CMD` failed with code 1"):
        conf.get("smtp", "smtp_password")


def test_types(conf, monkeypatch):
    class Color(enum.Enum):
        RED = 1

    values = {"i": "10.0", "f": "1.5", "b": "On", "l": "a, b", "j": '{"a": 1}', "t": "90", "e": "RED", "empty": ""}
    for key, value in values.items():
        monkeypatch.setenv(f"AIRFLOW__MINE__{key.upper()}", value)
    assert (conf.getint("mine", "i"), conf.getfloat("mine", "f"), conf.getboolean("mine", "b")) == (10, 1.5, True)
    assert (conf.getlist("mine", "l"), conf.getjson("mine", "j")) == (["a", "b"], {"a": 1})
    assert conf.gettimedelta("mine", "t").total_seconds() == 90
    assert conf.getenum("mine", "e", Color) is Color.RED
    assert conf.getlist("mine", "empty") == [] and conf.getjson("mine", "empty", fallback=[]) == []
    assert conf.getimport("mine", "empty") is None
    assert conf.getsection("mine")["i"] == 10.0
    for read in (conf.getint, conf.getfloat, conf.getboolean, conf.getjson, conf.gettimedelta):
        with pytest.raises(AirflowConfigException, match=r"expected the option `mine\.l` to be"):
            read("mine", "l")


def test_what_nobody_has_set_has_a_fallback_or_is_an_error(conf):
    assert conf.get("nope", "nothing", fallback=None) is None
    assert conf.getint("nope", "nothing", fallback=3) == 3
    assert not conf.has_option("nope", "nothing") and conf.has_option("core", "parallelism")
    assert conf.getboolean("operators", "default_deferrable") is False
    with pytest.raises(AirflowConfigException, match=r"the option `email\.from_email` is not set"):
        conf.get("email", "from_email")
    assert conf.getsection("nope") is None


def test_options_can_be_set_for_this_process(conf):
    conf.set("core", "parallelism", "3")
    assert conf.getint("core", "parallelism") == 3
    conf.remove_option("core", "parallelism")
    assert conf.getint("core", "parallelism") == 32


def test_aliases_set_what_our_own_names_do_not(tmp_path):
    environ = {
        "AIRFLOW__CORE__PARALLELISM": "7",
        "AIRFLOW__CORE__DAGS_FOLDER": "/dags",
        "AIRFLOW__CORE__FERNET_KEY": "a,b",
        "AIRFLOW__LOGGING__BASE_LOG_FOLDER": "/logs",
        "AIRFLOW__SCHEDULER__SCHEDULER_ZOMBIE_TASK_THRESHOLD": "2",
        "AIRFLOW__SCHEDULER__LOCAL_TASK_JOB_HEARTBEAT_SEC": "600",
        "AIRFLOW__SCHEDULER__ZOMBIE_DETECTION_INTERVAL": "5.0",
        "AIRFLOW__CORE__HIDE_SENSITIVE_VAR_CONN_FIELDS": "no",
        "AIRFLOW__CORE__SENSITIVE_VAR_CONN_NAMES": "comma, separated",
    }
    settings = load_settings(tmp_path, environ)
    assert (settings.agent.slots, settings.agent.lease_seconds, settings.agent.renew_seconds) == (7, 2.0, 600.0)
    assert settings.scheduler.rescue_seconds == 5.0
    assert settings.secrets.keys == ("a", "b")
    assert (settings.secrets.hide_sensitive, settings.secrets.sensitive_names) == (False, ("comma", "separated"))
    assert str(settings.logs_dir) == "/logs"
    assert [(one.name, str(one.path)) for one in settings.projects] == [("dags", "/dags")]
    assert settings.notices == ()
    (tmp_path / "headrace.toml").write_text("[agent]\nslots = 3\n[projects]\nmine = '/mine'\n")
    ours = load_settings(tmp_path, {**environ, "HEADRACE_AGENT__LEASE_SECONDS": "20"})
    assert (ours.agent.slots, ours.agent.lease_seconds) == (3, 20.0)
    assert [one.name for one in ours.projects] == ["mine"]


def test_every_alias_means_a_setting_that_exists():
    from headrace.settings import describe_settings

    known = {doc.name for doc in describe_settings()}
    assert {name for name in alias_names().values() if not name.startswith("projects.")} <= known


def test_a_heartbeat_of_zero_means_our_own_choice(tmp_path):
    settings = load_settings(tmp_path, {"AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_SEC": "0"})
    assert settings.agent.renew_seconds is None


@pytest.mark.parametrize(
    ("variable", "message"),
    [
        ("AIRFLOW__CORE__PARALLELISM", "expected `AIRFLOW__CORE__PARALLELISM` to be a whole number, got: `many`"),
        (
            "AIRFLOW__CORE__HIDE_SENSITIVE_VAR_CONN_FIELDS",
            "expected `AIRFLOW__CORE__HIDE_SENSITIVE_VAR_CONN_FIELDS` to be true or false, got: `many`",
        ),
    ],
)
def test_wrong_values_name_the_variable(tmp_path, variable, message):
    with pytest.raises(SettingsError) as caught:
        load_settings(tmp_path, {variable: "many"})
    assert str(caught.value) == message


def test_wrong_defaults_of_tasks_are_told_before_a_file_is_loaded(tmp_path):
    with pytest.raises(SettingsError, match="`AIRFLOW__CORE__DEFAULT_TASK_RETRIES` to be a whole number, got: `x`"):
        load_settings(tmp_path, {"AIRFLOW__CORE__DEFAULT_TASK_RETRIES": "x"})


def test_an_installation_sets_the_defaults_of_its_dags(tmp_path):
    (tmp_path / "flow.py").write_text(
        "from airflow.sdk import DAG\nfrom airflow.operators.empty import EmptyOperator\n"
        "with DAG('flow', schedule=None):\n    EmptyOperator(task_id='t')\n"
    )
    program = (
        "from pathlib import Path; from headrace.authoring import load_file\n"
        f"flow, = load_file(Path({str(tmp_path)!r}), 'flow.py').workflows\n"
        "node = flow.nodes[1]\n"
        "print(node.retry.limit, node.retry.delay_seconds, node.queue)\n"
        "print(flow.max_active_runs, flow.is_paused_at_creation)"
    )
    options = {
        "AIRFLOW__CORE__DEFAULT_TASK_RETRIES": "2",
        "AIRFLOW__CORE__DEFAULT_TASK_RETRY_DELAY": "7",
        "AIRFLOW__OPERATORS__DEFAULT_QUEUE": "big",
        "AIRFLOW__CORE__MAX_ACTIVE_RUNS_PER_DAG": "3",
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "True",
    }
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **options}, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["2", "7.0", "big", "3", "True"], done.stderr


def test_files_that_cannot_be_read_are_named(tmp_path):
    with pytest.raises(SettingsError, match="could not read Airflow's configuration"):
        load_settings(tmp_path, {"AIRFLOW_CONFIG": str(tmp_path / "missing.cfg")})
    (tmp_path / "bad.cfg").write_text("[core\nx")
    with pytest.raises(SettingsError) as caught:
        load_settings(tmp_path, {"AIRFLOW_CONFIG": str(tmp_path / "bad.cfg")})
    assert caught.value.place.startswith(str(tmp_path / "bad.cfg"))


def test_what_has_no_effect_is_said_once(tmp_path):
    environ = {
        "AIRFLOW__CORE__EXECUTOR": "CeleryExecutor",
        "AIRFLOW__API__PORT": "9090",
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": "postgresql://u:pw@h/airflow",
        "AIRFLOW__CORE__PARALELISM": "3",
        "AIRFLOW__OPERATORS__DEFAULT_OWNER": "me",
        "AIRFLOW__AWS__SESSION_FACTORY": "x",
    }
    assert notices(read_options(environ)) == [
        "`AIRFLOW__API__PORT` has no effect",
        "`AIRFLOW__CORE__EXECUTOR` has no effect: tasks run in local processes",
        "`AIRFLOW__CORE__PARALELISM` has no effect, did you mean `core.parallelism`?",
        "`AIRFLOW__DATABASE__SQL_ALCHEMY_CONN` has no effect: it names Airflow's own database; set `store` for ours",
    ]
    assert notices(read_options({"AIRFLOW__CORE__EXECUTOR": "LocalExecutor"})) == []
