"""Connections in all their forms, and where they are found."""

from __future__ import annotations

import json

import pytest

from headrace.authoring.dag.connection_forms import fields_of_json, fields_of_uri, uri_of
from headrace.authoring.dag.connections import Connection
from headrace.authoring.dag.context import Context, enter_task, leave_task
from headrace.authoring.dag.exceptions import AirflowException, AirflowNotFoundException
from headrace.authoring.dag.hooks import BaseHook
from headrace.authoring.dag.variables import Variable
from headrace.handoff import MissingError

# What Airflow 3.3 makes of these URIs: type, host, login, password, schema, port, extra.
PARSED = {
    "postgres://u:p%40ss@Host.Example:5432/db?sslmode=require": (
        "postgres", "host.example", "u", "p@ss", "db", 5432, '{"sslmode": "require"}',
    ),
    "postgresql://h/db": ("postgres", "h", None, None, "db", None, None),
    "http://https://api.example.com:8443/path?x=1": (
        "http", "https://api.example.com", None, None, "path", 8443, '{"x": 1}',
    ),
    "aws://AKIA:s%2Fecret@/?region_name=eu-west-1": (
        "aws", "", "AKIA", "s/ecret", "", None, '{"region_name": "eu-west-1"}',
    ),
    "google-cloud-platform://?__extra__=%7B%22a%22%3A%20%7B%22b%22%3A%201%7D%7D": (
        "google_cloud_platform", "", None, None, "", None, '{"a": {"b": 1}}',
    ),
    "ssh://user@[::1]:22": ("ssh", "::1", "user", None, "", 22, None),
    "postgres://:pw@h": ("postgres", "h", "", "pw", "", None, None),
    "sqlite://%2Ftmp%2Fx.db": ("sqlite", "/tmp/x.db", None, None, "", None, None),
    "x://@:8080": ("x", "", "", None, "", 8080, None),
    "x://u:p@h/sch%2Fema?blank=&l=%5B1%5D": ("x", "h", "u", "p", "sch/ema", None, '{"blank": "", "l": [1]}'),
    "spark-submit://spark%3A%2F%2Fhost:7077?queue=q": (
        "spark_submit", "spark://host", None, None, "", 7077, '{"queue": "q"}',
    ),
}  # fmt: skip


class Keeper:
    """An engine that knows variables and connections."""

    def __init__(self, connections=None, variables=None):
        self.known = {"get_connection": connections or {}, "get_variable": variables or {}}
        self.masked = []

    def ask(self, verb, **args):
        if verb == "mask":
            self.masked.append((args["values"], args.get("name")))
            return None
        if args["name"] not in self.known[verb]:
            raise MissingError(args["name"])
        return self.known[verb][args["name"]]


@pytest.fixture
def running():
    """Enters a task with an engine; tests call it."""
    entered = []

    def enter(engine):
        enter_task(Context({}, {}), engine)
        entered.append(engine)
        return engine

    yield enter
    for _ in entered:
        leave_task()


@pytest.mark.parametrize("uri", PARSED)
def test_uris_are_read_as_airflow_reads_them(uri):
    fields = fields_of_uri(uri)
    names = ("conn_type", "host", "login", "password", "schema", "port", "extra")
    assert tuple(fields.get(name) for name in names) == PARSED[uri]
    assert fields_of_uri(uri_of(fields)) == fields


@pytest.mark.parametrize("uri", ["a://b://c://d", "http://user:pw@https://h", "generic://h:99999"])
def test_uris_that_make_no_sense_are_refused_without_their_password(uri):
    with pytest.raises(AirflowException) as caught:
        fields_of_uri(uri)
    assert "pw" not in str(caught.value)


def test_json_may_have_extra_as_an_object_or_as_text():
    assert fields_of_json('{"conn_type": "postgresql", "port": "5", "extra": {"a": 1}}') == {
        "conn_type": "postgres", "port": 5, "extra": '{"a": 1}',
    }  # fmt: skip
    for text in ("[1]", "{", '{"conn_type": "x", "port": "y"}', '{"nope": 1}'):
        with pytest.raises(AirflowException):
            fields_of_json(text)


def test_a_connection_has_airflows_face():
    made = Connection.from_json('{"conn_type": "http", "host": "h", "extra": {"a": "{\\"b\\": 1}"}}', conn_id="c")
    assert made.extra_dejson == {"a": '{"b": 1}'}
    assert made.get_extra_dejson(nested=True) == {"a": {"b": 1}}
    assert json.loads(made.as_json()) == {"conn_type": "http", "host": "h", "extra": {"a": '{"b": 1}'}}
    assert Connection(conn_id="c", uri="http://h").get_uri() == "http://h"
    assert Connection.from_uri("http://h", conn_id="c") == Connection(
        conn_id="c", conn_type="http", host="h", schema=""
    )
    assert Connection(extra="no json").extra_dejson == {}
    with pytest.raises(AirflowException, match="either as a URI or by its parts"):
        Connection(conn_id="c", uri="http://h", host="h")


def test_the_environment_comes_before_the_engine(running, monkeypatch):
    running(Keeper({"db": {"conn_type": "http", "host": "engine"}}, {"v": "engine", "w": "engine"}))
    assert BaseHook.get_connection("db").host == "engine"
    monkeypatch.setenv("AIRFLOW_CONN_DB", "http://environment")
    assert [one.host for one in BaseHook.get_connections("db")] == ["environment"]
    monkeypatch.setenv("HEADRACE_CONN_OTHER", '{"conn_type": "http", "host": "json"}')
    assert Connection.get("other").host == "json"
    monkeypatch.setenv("AIRFLOW_VAR_V", "environment")
    monkeypatch.setenv("HEADRACE_VAR_U", "ours")
    assert [Variable.get(name) for name in ("v", "w", "u")] == ["environment", "engine", "ours"]
    with pytest.raises(AirflowNotFoundException, match="there is no connection `nope`"):
        BaseHook.get_connection("nope")


def test_values_from_the_environment_are_masked_as_those_of_the_engine(running, monkeypatch):
    engine = running(Keeper())
    monkeypatch.setenv("AIRFLOW_CONN_DB", "http://u:pass-word@h?api_key=kkkkk")
    monkeypatch.setenv("AIRFLOW_VAR_MY_TOKEN", "ttttt")
    Connection.get("db")
    Variable.get("my_token")
    assert (["pass-word"], None) in engine.masked
    assert (['{"api_key": "kkkkk"}'], "") in engine.masked
    assert (["ttttt"], "my_token") in engine.masked


BACKEND = """
from airflow.secrets import BaseSecretsBackend

class Mine(BaseSecretsBackend):
    def __init__(self, **known):
        self.known = known
    def get_variable(self, key, team_name=None):
        if key == "broken":
            raise RuntimeError("vault is sealed")
        return self.known.get(key)
    def get_conn_value(self, conn_id, team_name=None):
        return self.known.get(conn_id)
    def get_config(self, key):
        return f"config of {key}"

class Other(Mine):
    pass
"""


def test_custom_backends_come_first_and_may_fail(running, monkeypatch, tmp_path, caplog):
    from headrace.compat.airflow import install

    install()
    (tmp_path / "my_backend_module.py").write_text(BACKEND)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("AIRFLOW__SECRETS__BACKEND", "my_backend_module.Mine")
    monkeypatch.setenv("AIRFLOW__SECRETS__BACKEND_KWARGS", '{"v": "backend", "c": "http://backend"}')
    monkeypatch.setenv("AIRFLOW_VAR_V", "environment")
    monkeypatch.setenv("AIRFLOW_VAR_BROKEN", "environment")
    running(Keeper({"d": {"conn_type": "http", "host": "engine"}}))
    assert (Variable.get("v"), Variable.get("broken")) == ("backend", "environment")
    assert "get_variable of Mine failed; the next place is asked" in caplog.text
    assert (Connection.get("c").host, Connection.get("d").host) == ("backend", "engine")
    monkeypatch.setenv("AIRFLOW__WORKERS__SECRETS_BACKEND", "my_backend_module.Other")
    monkeypatch.setenv("AIRFLOW__WORKERS__SECRETS_BACKEND_KWARGS", '{"v": "worker"}')
    assert Variable.get("v") == "worker"

    from headrace.authoring.dag.configuration import conf

    monkeypatch.setenv("AIRFLOW__SMTP__SMTP_PASSWORD_SECRET", "smtp")
    assert conf.get("smtp", "smtp_password") == "config of smtp"


def test_files_can_be_a_backend(running, monkeypatch, tmp_path):
    (tmp_path / "v.yaml").write_text("a: 1\nb: text\n")
    (tmp_path / "c.env").write_text("# comment\ndb=http://file\n")
    path = "airflow.secrets.local_filesystem.LocalFilesystemBackend"
    from headrace.compat.airflow import install

    install()
    monkeypatch.setenv("AIRFLOW__SECRETS__BACKEND", path)
    arguments = {"variables_file_path": str(tmp_path / "v.yaml"), "connections_file_path": str(tmp_path / "c.env")}
    monkeypatch.setenv("AIRFLOW__SECRETS__BACKEND_KWARGS", json.dumps(arguments))
    running(Keeper())
    assert (Variable.get("a"), Variable.get("b"), Connection.get("db").host) == ("1", "text", "file")


def test_with_a_cache_files_ask_once_and_tasks_every_time(monkeypatch):
    from headrace.authoring.asking import enter_loading, leave_loading

    monkeypatch.setenv("AIRFLOW__SECRETS__USE_CACHE", "True")
    keeper = Keeper(variables={"cached_name": "1"})
    enter_loading(keeper)
    try:
        assert Variable.get("cached_name") == "1"
        keeper.known["get_variable"]["cached_name"] = "2"
        assert Variable.get("cached_name") == "1"
        enter_task(Context({}, {}), keeper)
        assert Variable.get("cached_name") == "2"
        leave_task()
    finally:
        leave_loading()


def test_a_hook_is_found_by_the_type_of_its_connection(monkeypatch, tmp_path):
    package = tmp_path / "my_hooks-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Name: my-hooks\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[apache_airflow_provider]\nprovider_info=my_hooks_module:info\n")
    (tmp_path / "my_hooks_module.py").write_text(
        "class Hook:\n"
        "    conn_name_attr = 'mine_conn_id'\n"
        "    def __init__(self, mine_conn_id, **more): self.id, self.more = mine_conn_id, more\n"
        "    def test_connection(self): return True, 'it works'\n"
        "def info():\n"
        "    return {'connection-types': [{'connection-type': 'mine', 'hook-class-name': 'my_hooks_module.Hook'}],\n"
        "            'config': {'mine': {'options': {'speed': {'default': '5'}}}}}\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    made = Connection(conn_id="c", conn_type="mine")
    hook = made.get_hook(hook_params={"x": 1})
    assert (hook.id, hook.more) == ("c", {"x": 1})
    assert made.test_connection() == (True, "it works")

    from headrace.authoring.dag.configuration import Configuration

    assert Configuration().getint("mine", "speed") == 5
    assert Connection(conn_type="other").test_connection()[0] is False
