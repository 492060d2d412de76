"""Every `headrace` command in a code block of the documentation exists, with the options that it is shown with."""

from __future__ import annotations

import shlex

import click
import pytest
from pages import ROOT, blocks_of

from headrace.cli.main import headrace


def command_lines():
    for page in sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]):
        for block in blocks_of(page):
            for line in block.text.splitlines() if block.language == "sh" else ():
                words = shlex.split(line, comments=True)
                if words and words[0].rpartition("/")[2] == "headrace":
                    yield pytest.param(words[1:], id=f"{page.name}: {shlex.join(words[1:])}")


@pytest.mark.parametrize("words", list(command_lines()))
def test_commands_exist(words):
    # With the settings of a real call: a command's help option is made once per process, and other tests compare it.
    names = headrace.context_settings["help_option_names"]
    command, context = headrace, click.Context(headrace, help_option_names=names)
    while isinstance(command, click.Group):
        name, *words = words
        command = command.get_command(context, name)
        assert command is not None, f"there is no command `{name}`"
    command.make_context(name, words, parent=context)
