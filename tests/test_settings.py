from __future__ import annotations

from pathlib import Path

import pytest

from headrace.errors import SettingsError
from headrace.settings import ProjectFolder, describe_settings, load_settings


def load(home, toml="", **environ):
    if toml:
        (home / "headrace.toml").write_text(toml)
    return load_settings(home, environ)


def refusal(home, toml="", **environ):
    with pytest.raises(SettingsError) as caught:
        load(home, toml, **environ)
    return str(caught.value)


def test_everything_has_a_default(tmp_path):
    settings = load(tmp_path)
    assert settings.home == tmp_path
    assert settings.store == f"sqlite:///{tmp_path}/headrace.db"
    assert settings.logs_dir == tmp_path / "logs"
    assert settings.projects == ()
    assert settings.agent.slots >= 4
    assert settings.agent.renewal_seconds == settings.agent.lease_seconds / 3 == 5.0


def test_home_comes_from_the_argument_then_the_environment_then_the_user(tmp_path):
    assert load_settings(tmp_path, {"HEADRACE_HOME": "/elsewhere"}).home == tmp_path
    assert load_settings(None, {"HEADRACE_HOME": str(tmp_path)}).home == tmp_path
    assert load_settings(None, {}).home == Path.home() / ".headrace"


def test_file_sets_values(tmp_path):
    settings = load(
        tmp_path,
        """
        store = "postgresql://db/headrace"
        logs_dir = "task-logs"
        [projects]
        sales = "flows/sales"
        ops = "/srv/ops"
        [agent]
        slots = 3
        lease_seconds = 30
        queues = ["big", "small"]
        isolation = "reuse"
        """,
    )
    assert settings.store == "postgresql://db/headrace"
    assert settings.logs_dir == tmp_path / "task-logs"
    assert settings.projects == (
        ProjectFolder("sales", tmp_path / "flows/sales"),
        ProjectFolder("ops", Path("/srv/ops")),
    )
    assert (settings.agent.slots, settings.agent.lease_seconds) == (3, 30.0)
    assert settings.agent.queues == ("big", "small")
    assert settings.agent.isolation == "reuse"


def test_environment_overrides_the_file(tmp_path):
    settings = load(
        tmp_path,
        "store = 'sqlite:///a.db'\n[agent]\nslots = 3\nreuse_limit = 7",
        HEADRACE_STORE="sqlite:///b.db",
        HEADRACE_AGENT__SLOTS="9",
        HEADRACE_AGENT__QUEUES="big, small",
        HEADRACE_PROJECTS__SALES="flows",
        HEADRACE_SCHEDULER__RETENTION_DAYS="30",
        HEADRACE_TASK_KEY="a task may call headrace",
        PATH="/bin",
    )
    assert settings.store == "sqlite:///b.db"
    assert (settings.agent.slots, settings.agent.reuse_limit) == (9, 7)
    assert settings.agent.queues == ("big", "small")
    assert settings.projects == (ProjectFolder("sales", tmp_path / "flows"),)
    assert settings.scheduler.retention_days == 30


def test_none_in_the_environment_clears_an_optional_setting(tmp_path):
    settings = load(tmp_path, "[scheduler]\nretention_days = 5", HEADRACE_SCHEDULER__RETENTION_DAYS="none")
    assert settings.scheduler.retention_days is None


def test_folder_named_workflows_is_the_default_project(tmp_path):
    (tmp_path / "workflows").mkdir()
    assert load(tmp_path).projects == (ProjectFolder("workflows", tmp_path / "workflows"),)


def test_unknown_name_suggests_the_nearest(tmp_path):
    text = refusal(tmp_path, "[agent]\nslot = 3")
    assert text == f"unknown setting: `agent.slot` (`{tmp_path}/headrace.toml`)\nhint: did you mean `agent.slots`?"
    assert "did you mean `agent.slots`?" in refusal(tmp_path, "[agents]\nslots = 3")


def test_unknown_variable_suggests_the_nearest(tmp_path):
    assert refusal(tmp_path, HEADRACE_AGENT_SLOTS="3") == (
        "unknown setting in the environment: `HEADRACE_AGENT_SLOTS`\nhint: did you mean `HEADRACE_AGENT__SLOTS`?"
    )


@pytest.mark.parametrize(
    ("toml", "text"),
    [
        ("[agent]\nslots = 'many'", "expected `agent.slots` to be a whole number of at least 1, got: `many`"),
        ("[agent]\nslots = true", "expected `agent.slots` to be a whole number of at least 1, got: `true`"),
        ("[agent]\nslots = 0", "expected `agent.slots` to be a whole number of at least 1, got: `0`"),
        ("[agent]\nslots = 1.5", "expected `agent.slots` to be a whole number of at least 1, got: `1.5`"),
        ("[agent]\nqueues = 'big'", "expected `agent.queues` to be a list of strings, got: `big`"),
        ("[agent]\nisolation = 'none'", "expected `agent.isolation` to be `process` or `reuse`, got: `none`"),
        ("agent = 3", "expected `agent` to be a table, got: `3`"),
        ("logs_dir = 3", "expected `logs_dir` to be a path, got: `3`"),
        ("[projects]\nsales = 3", "expected `projects.sales` to be a path, got: `3`"),
        (
            "store = 'mysql://db'",
            "expected `store` to be a URL that begins with `sqlite:///` or `postgresql://`, got: `mysql://db`",
        ),
    ],
)
def test_wrong_value_in_the_file(tmp_path, toml, text):
    assert refusal(tmp_path, toml) == f"{text} (`{tmp_path}/headrace.toml`)"


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg2"])
def test_a_store_may_be_named_in_every_usual_way(tmp_path, scheme):
    assert load_settings(tmp_path, {"HEADRACE_STORE": f"{scheme}://app@db/flows"}).store == f"{scheme}://app@db/flows"


def test_wrong_value_in_the_environment(tmp_path):
    assert refusal(tmp_path, HEADRACE_PARSER__TIMEOUT_SECONDS="soon") == (
        "expected `HEADRACE_PARSER__TIMEOUT_SECONDS` to be a number of at least 0.1, got: `soon`"
    )


def test_broken_file_names_the_line(tmp_path):
    text = refusal(tmp_path, "[agent]\nslots = = 3")
    assert f"{tmp_path}/headrace.toml:2`" in text


def test_every_setting_is_described_and_can_be_set_by_its_variable(tmp_path):
    docs = {doc.name: doc for doc in describe_settings()}
    assert docs["agent.slots"] == (
        "agent.slots",
        "HEADRACE_AGENT__SLOTS",
        "a whole number",
        "four per CPU",
        "How many tasks one agent runs at the same time.",
    )
    assert docs["home"].variable == "HEADRACE_HOME"
    samples = {
        "a whole number": "64",
        "a number": "1.5",
        "a path": "x",
        "a list of strings": "a",
        "a string": "sqlite:///x",
        "true or false": "false",
    }
    settings = load(
        tmp_path,
        **{
            doc.variable: samples.get(doc.type) or doc.type.split("`")[-2]
            for doc in docs.values()
            if doc.name not in ("home", "projects")
        },
    )
    assert (settings.agent.slots, settings.agent.isolation, settings.parser.memory_mb) == (64, "reuse", 64)
    assert all(doc.doc.endswith(".") for doc in docs.values())
