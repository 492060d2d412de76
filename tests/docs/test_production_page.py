"""What the pages about operations tell people to type exists, and does what they say."""

from __future__ import annotations

import re
import shlex
import sqlite3
import tomllib
from contextlib import closing

import click
import pytest
from pages import ROOT, blocks_of

from headrace.cli.main import headrace
from headrace.definition import Node, Retry, Workflow
from headrace.settings import FILE_NAME, describe_settings, load_settings
from headrace.testing.engine import Engine
from headrace.testing.run import Run

PAGES = sorted((ROOT / "docs" / "operations").glob("*.md"))
PRODUCTION = ROOT / "docs" / "operations" / "production.md"
BACKUP = ROOT / "docs" / "operations" / "backup-and-upgrade.md"
FLOW = Workflow(
    name="flow",
    language="python",
    nodes=(
        Node(key="", kind="group"),
        Node(key="a", parent="", operator="python", retry=Retry(limit=1)),
        Node(key="b", parent="", operator="python", upstream=("a",)),
    ),
)
_SECTIONS = {setting.name.partition(".")[0] for setting in describe_settings() if "." in setting.name}


def units():
    return [block.text for block in blocks_of(PRODUCTION) if block.language == "ini"]


def test_services_start_commands_that_exist():
    lines = [line.removeprefix("ExecStart=") for unit in units() for line in unit.splitlines() if "ExecStart=" in line]
    names = []
    for _, name, *words in map(shlex.split, lines):
        options = headrace.context_settings["help_option_names"]
        context = click.Context(headrace, help_option_names=options)
        headrace.get_command(context, name).make_context(name, words, parent=context)
        names.append(name)
    assert names == ["scheduler", "agent", "triggerer"]


def test_an_agent_has_time_to_drain():
    (agent,) = (unit for unit in units() if "headrace agent" in unit)
    drain, stop = (int(re.search(rf"{name}[ =](\d+)", agent)[1]) for name in ("--drain-seconds", "TimeoutStopSec"))
    assert stop > drain + load_settings(environ={}).agent.kill_grace_seconds + 5


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_within_sentences_can_be_typed(page):
    context = click.Context(headrace, help_option_names=headrace.context_settings["help_option_names"])
    for span in re.findall(r"`headrace ([a-z][^`]*)`", page.read_text().replace("\n", " ")):
        command, words = headrace, shlex.split(span)
        while isinstance(command, click.Group) and words:
            name, *words = words
            command = command.get_command(context, name)
            assert command is not None, f"there is no command `{name}` in `headrace {span}`"
        assert not isinstance(command, click.Group) or command.invoke_without_command, f"`headrace {span}` does nothing"
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("-")} <= known, span


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_settings_that_are_mentioned_exist(page):
    known = {setting.name for setting in describe_settings()} | {"secrets.key"}  # a file beside the database
    mentioned = re.findall(rf"`((?:{'|'.join(_SECTIONS)})\.\w+)`", page.read_text())
    assert set(mentioned) <= known


def test_the_settings_of_the_page_can_be_loaded(tmp_path):
    (example,) = (block.text for block in blocks_of(PRODUCTION) if block.language == "toml")
    (tmp_path / FILE_NAME).write_text(example)
    settings = load_settings(tmp_path, {})
    assert settings.scheduler.retention_days == tomllib.loads(example)["scheduler"]["retention_days"]


def test_a_backup_that_was_made_while_a_task_ran_goes_on_from_there(tmp_path):
    (command,) = (one.text for one in blocks_of(BACKUP) if one.language == "sh" and "sqlite3" in one.text)
    _, _, statement = shlex.split(command)
    engine, copy = Engine(tmp_path), tmp_path / "copy"
    copy.mkdir()
    run = engine.start(FLOW)
    engine.agent.wake()
    engine.agent.step(0.0)
    assert run.states() == {"a": "running", "b": "none"}
    with closing(sqlite3.connect(tmp_path / "engine.db")) as connection:
        connection.execute(statement.replace("/backup/headrace.db", str(copy / "engine.db")))
    engine.settle()
    assert run.state == "success"
    engine.close()

    restored = Engine(copy)
    restored.save(FLOW)
    again = Run(restored.store, restored.clock, run.id, copy)
    assert again.states() == {"a": "running", "b": "none"}
    restored.advance(60)
    restored.settle()
    assert (again.state, again.states()) == ("success", {"a": "success", "b": "success"})
    assert again.story("a").count("running") == 2
    restored.close()
