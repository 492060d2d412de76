"""`headrace init`."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from headrace.authoring.dig.naming import check_workflow_name
from headrace.definition import Place
from headrace.errors import UsageError

_ECHO = """\
timezone: UTC

+hello:
  echo>: "hello from ${session_date}"

+each:
  for_each>:
    animal: [cat, dog]
  _parallel: true
  _do:
    echo>: "a ${animal}"
"""
_SHELL = """\
timezone: UTC

+prepare:
  sh>: mkdir -p data

+work:
  sh>: tasks/work.sh ${session_date}
  _retry: 1
"""
_SHELL_SCRIPT = """\
#!/bin/sh
set -eu
echo "working for $1"
"""
_PYTHON = """\
timezone: UTC

+count:
  py>: tasks.count
  words: [one, two, three]

+tell:
  echo>: "there are ${total} words"
"""
_PYTHON_MODULE = """\
import digdag


def count(words):
    digdag.env.store({"total": len(words)})
"""
_RUBY = """\
timezone: UTC

_export:
  rb:
    require: tasks/words

+count:
  rb>: Words.count
  words: [one, two, three]

+tell:
  echo>: "there are ${total} words"
"""
_RUBY_CLASS = """\
class Words
  def count(words)
    Digdag.env.store(total: words.size)
  end
end
"""
_IGNORED = ".digdag\n*.log\n"

KINDS: dict[str, dict[str, str]] = {
    "echo": {"NAME.dig": _ECHO},
    "sh": {"NAME.dig": _SHELL, "tasks/work.sh": _SHELL_SCRIPT},
    "python": {"NAME.dig": _PYTHON, "tasks/__init__.py": _PYTHON_MODULE},
    "ruby": {"NAME.dig": _RUBY, "tasks/words.rb": _RUBY_CLASS},
}


@click.command("init")
@click.argument("folder")
@click.option(
    "-t", "--type", "kind", type=click.Choice(list(KINDS)), default="echo", show_default=True, help="What it does."
)
def command(folder: str, kind: str) -> None:
    """Make FOLDER with a small project to begin with."""
    place = Path(folder)
    name = place.absolute().name
    # The workflow is called like the folder, which may be something that no workflow can be called.
    check_workflow_name(name, Place())
    files = {path.replace("NAME", name): text for path, text in KINDS[kind].items()}
    files[".gitignore"] = _IGNORED
    there = [path for path in files if (place / path).exists()]
    if there:
        raise UsageError(f"`{place / there[0]}` exists already", hint="name another folder")
    for path, text in files.items():
        target = place / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        if text.startswith("#!"):
            target.chmod(0o755)
        click.echo(f"  creating {target}")
    click.echo(f"Done. Run it with `headrace run {shlex.quote(f'{place / name}.dig')}`.")
