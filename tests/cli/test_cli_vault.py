"""`headrace variables`, `connections`, `secrets` and `config`, in this process and with a home of their own."""

from __future__ import annotations

import json

import pytest

from headrace.testing.project import Project


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path, {"HEADRACE_SECRETS__LOCAL_DIR": str(tmp_path / "local")})


def said(project, *arguments, input=None, monkeypatch=None):
    return project.call(*arguments).check().out.strip()


def pipe(monkeypatch, text):
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO(text))


def test_a_variable_is_set_got_listed_and_deleted(project, monkeypatch):
    assert said(project, "variables", "set", "color", "blue") == "variable `color` is set"
    pipe(monkeypatch, "from stdin\n")
    said(project, "variables", "set", "api_token")
    assert said(project, "variables", "get", "api_token") == "from stdin"
    listed = project.call("variables", "list").check().out
    assert "color" in listed and "blue" not in listed and "from stdin" not in listed
    assert project.call("variables", "list", "--values", "--json").check().json == {
        "variables": [{"name": "api_token", "value": "from stdin"}, {"name": "color", "value": "blue"}]
    }
    said(project, "variables", "delete", "color")
    missing = project.call("variables", "get", "color")
    assert (missing.exit_code, missing.err) == (2, "error: there is no variable `color`\n")


def test_variables_are_exported_and_imported(project):
    project.write("in.json", json.dumps({"a": "1", "b": {"x": [1]}, "c": {"value": "v", "description": "why"}}))
    assert said(project, "variables", "import", "in.json") == "3 of 3 variables are set"
    assert said(project, "variables", "get", "b") == '{"x": [1]}'
    refused = project.call("variables", "import", "in.json", "--existing", "fail")
    assert "variable `a` exists already" in refused.err
    assert said(project, "variables", "import", "in.json", "--existing", "skip") == "0 of 3 variables are set"
    project.call("variables", "export", "out.json").check()
    exported = json.loads(project.read("out.json"))
    assert exported == {"a": "1", "b": '{"x": [1]}', "c": {"value": "v", "description": "why"}}
    assert (project.root / "out.json").stat().st_mode & 0o777 == 0o600


def test_a_connection_hides_its_secrets_until_asked(project, monkeypatch):
    pipe(monkeypatch, "postgres://app:p%40ss@db:5432/sales?sslmode=require&api_key=abc\n")
    assert said(project, "connections", "add", "db") == "connection `db` is set"
    shown = project.call("connections", "get", "db").check().json
    assert (shown["password"], shown["host"], json.loads(shown["extra"])) == (
        "***",
        "db",
        {"sslmode": "require", "api_key": "***"},
    )
    assert project.call("connections", "get", "db", "--reveal").check().json["password"] == "p@ss"
    uri = said(project, "connections", "get", "db", "--reveal", "--uri")
    assert uri == "postgres://app:p%40ss@db:5432/sales?sslmode=require&api_key=abc"
    assert "p@ss" not in project.call("connections", "list").check().out
    assert project.call("connections", "get", "db", "--uri").exit_code == 2


def test_a_connection_is_given_in_parts_or_as_json(project, monkeypatch):
    pipe(monkeypatch, "hidden\n")
    parts = ("--conn-type", "http", "--conn-host", "h", "--conn-password", "-", "--conn-extra", '{"a": 1}')
    said(project, "connections", "add", "api", *parts)
    assert project.call("connections", "get", "api", "--reveal").check().json == {
        "conn_id": "api", "conn_type": "http", "host": "h", "password": "hidden", "extra": '{"a": 1}',
    }  # fmt: skip
    wrong = project.call("connections", "add", "x", '{"conn_typ": "http"}')
    assert "a connection has no field `conn_typ`" in wrong.err
    mixed = project.call("connections", "add", "x", "http://h", "--conn-host", "h")
    assert "either as a whole or in parts" in mixed.err
    project.write("in.yaml", "one: http://h1\ntwo:\n  conn_type: http\n  extra: {k: v}\n")
    assert said(project, "connections", "import", "in.yaml") == "2 of 2 connections are set"
    assert project.call("connections", "get", "two").check().json["extra"] == '{"k": "v"}'
    exported = json.loads(said(project, "connections", "export", "-"))
    assert set(exported) == {"api", "one", "two"}
    said(project, "connections", "delete", "two")
    assert "there is no connection `two`" in project.call("connections", "delete", "two").err


def test_a_connection_without_a_hook_says_so(project):
    said(project, "connections", "add", "x", "nosuch://h")
    done = project.call("connections", "test", "x")
    assert done.exit_code == 1
    assert "no installed provider has a hook for connections of type `nosuch`" in done.err


@pytest.mark.parametrize(("conn_type", "provider"), [("vertica", "vertica"), ("hive_cli", "apache-hive")])
def test_a_connection_whose_provider_is_not_installed_names_the_command_that_brings_it(project, conn_type, provider):
    said(project, "connections", "add", "x", "--conn-type", conn_type, "--conn-host", "h")
    assert f"`headrace providers install {provider}` brings it" in project.call("connections", "test", "x").err


def test_secrets_in_the_forms_of_digdag(project, monkeypatch):
    (project.root / "value.txt").write_text("from file\n")
    project.write("many.json", '{"x.one": "1", "x.two": "2"}')
    pipe(monkeypatch, "from stdin\n")
    arguments = ("secrets", "--project", "p", "--set", "a=plain", "b=@value.txt", "c", "@many.json")
    done = project.call(*arguments).check()
    assert "plain" not in done.out + done.err
    assert project.call("secrets", "--project", "p", "--json").check().json == {
        "secrets": ["a", "b", "c", "x.one", "x.two"]
    }
    project.call("secrets", "--project", "p", "--delete", "x.one", "x.two").check()
    assert said(project, "secrets", "--project", "p") == "SECRET\na\nb\nc"
    assert said(project, "secrets", "--project", "other") == "SECRET"
    pipe(monkeypatch, "")
    refused = project.call("secrets", "--project", "p", "--set", "d")
    assert (refused.exit_code, "expected the value of `d` on the standard input" in refused.err) == (2, True)
    assert "there is no secret `x.one`" in project.call("secrets", "--project", "p", "--delete", "x.one").err


def test_local_secrets_and_the_scope_that_must_be_named(project, tmp_path):
    project.call("secrets", "--local", "--set", "pg.password=x").check()
    assert (tmp_path / "local" / "pg.password").read_text() == "x"
    assert said(project, "secrets", "--local") == "SECRET\npg.password"
    for arguments in (("secrets",), ("secrets", "--local", "--project", "p")):
        assert "either `--project PROJECT` or `--local`" in project.call(*arguments).err


def test_keys_are_printed_and_rotated(project):
    said(project, "variables", "set", "my_token", "abc")
    before = (project.home / "secrets.key").read_text()
    assert said(project, "secrets", "rotate").startswith("1 variables, connections and secrets are sealed")
    assert (project.home / "secrets.key").read_text() != before
    assert said(project, "variables", "get", "my_token") == "abc"
    assert len(said(project, "secrets", "new-key")) == 44


def test_config_says_what_a_setting_is_and_who_set_it(tmp_path):
    project = Project(
        tmp_path,
        {
            "AIRFLOW__CORE__PARALLELISM": "7",
            "HEADRACE_SECRETS__KEYS": "k" * 43 + "=",
            "HEADRACE_STORE": "postgresql://u:pw@h/d",
            "AIRFLOW__CORE__PARALELISM": "8",
        },
    )
    listed = project.call("config", "list", "--json").check().json
    settings = {one["name"]: (one["value"], one["set_by"]) for one in listed["settings"]}
    assert settings["agent.slots"] == ("7", "AIRFLOW__CORE__PARALLELISM")
    assert settings["secrets.keys"] == ("***", "HEADRACE_SECRETS__KEYS")
    assert settings["store"][0] == "postgresql://u@h/d"
    assert settings["agent.lease_seconds"] == ("15.0", "default")
    assert listed["notices"] == ["`AIRFLOW__CORE__PARALELISM` has no effect, did you mean `core.parallelism`?"]
    assert project.call("config", "get", "agent.slots").check().out == "7\n"
    assert "did you mean `agent.slots`?" in project.call("config", "get", "agent.slot").err
