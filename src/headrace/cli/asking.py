"""Values that should not stand on a command line, where the shell's history and the process list keep them."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from headrace.errors import UsageError


def ask_for(what: str) -> str:
    """A value that is typed without being shown, or piped in."""
    if sys.stdin.isatty():
        return str(click.prompt(what, hide_input=True, err=True))
    text = read_stdin()
    if not text:
        raise UsageError(f"expected the {what} on the standard input, got: nothing")
    return text


def read_stdin() -> str:
    """What is piped in, without the last line's end."""
    text = sys.stdin.read()
    return text.removesuffix("\n").removesuffix("\r")


def read_text(path: str) -> str:
    """The text of a file, as it is."""
    try:
        return Path(path).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError(f"could not read `{path}`: {reason}") from None


def write_private(path: str, text: str) -> None:
    """Write a file that only its owner can read; `-` is stdout."""
    if path == "-":
        click.echo(text)
        return
    target = Path(path).expanduser()
    try:
        target.touch(mode=0o600)
        target.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"could not write `{path}`: {error.strerror}") from None
