"""The reference of all commands, from their own help: `python -m headrace.cli.reference > docs/reference/cli.md`."""

from __future__ import annotations

from collections.abc import Iterator

import click

from headrace.cli.main import COMMANDS, headrace

_WIDTH = 100


def reference() -> str:
    """The whole page."""
    # With the settings of a real call: the help option is made once per process, and must be the same in both.
    names = headrace.context_settings["help_option_names"]
    root = click.Context(headrace, info_name="headrace", terminal_width=_WIDTH, help_option_names=names)
    parts = ["# Commands", "Generated from `--help` by `python -m headrace.cli.reference`."]
    parts += [_section("headrace", headrace, root)]
    for name in sorted(COMMANDS):
        command = headrace.get_command(root, name)
        assert command is not None
        parts += _sections(name, command, root)
    return "\n\n".join(parts) + "\n"


def _sections(name: str, command: click.Command, parent: click.Context) -> Iterator[str]:
    context = click.Context(command, info_name=name, parent=parent, terminal_width=_WIDTH)
    yield _section(context.command_path, command, context)
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            found = command.get_command(context, inner)
            assert found is not None
            yield from _sections(inner, found, context)


def _section(title: str, command: click.Command, context: click.Context) -> str:
    return f"## {title}\n\n```text\n{command.get_help(context)}\n```"


if __name__ == "__main__":
    print(reference(), end="")
