"""The entry point: finds the command, and turns every error into a sentence and an exit code."""

from __future__ import annotations

import atexit
import contextlib
import errno
import os
import sys
import threading
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from headrace.cli.digdag_options import accept_digdag_options
from headrace.cli.importing import imports
from headrace.errors import HeadraceError, did_you_mean
from headrace.release import VERSION

USAGE_EXIT = 2
INTERRUPT_EXIT = 130
CRASH_EXIT = 70
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""The output, or the disk, takes no more. That is nobody's mistake."""
_NUMBERS = {
    "is not a valid integer": "is not a whole number",
    "is not a valid integer range": "is not a whole number",
    "is not a valid float": "is not a number",
    "is not a valid float range": "is not a number",
}
"""How click says that a text is no number, and how we do."""

_HELP: Any = getattr(click.exceptions, "NoArgsIsHelpError", ())
"""Raised by click since 8.2 for a group that is called without a command; before that it prints the help itself."""

COMMANDS = {
    "run": "Run one workflow of a file to its end, without a server.",
    "agent": "Run tasks for the schedulers of a store.",
    "answer": "Answer what a task asks.",
    "archive": "Put the files of a project into an archive.",
    "assets": "List assets and their events, or emit one.",
    "attempts": "List the attempts of a run, or of all runs.",
    "backfill": "Run a workflow for times in the past.",
    "check": "Load workflow files and say what is in them.",
    "clear": "Give tasks of a run a new series of tries.",
    "config": "Show settings, with where they come from.",
    "connections": "List, add, test or delete connections.",
    "db": "Create, upgrade or check the database.",
    "delete": "Delete a project.",
    "disable": "Start no more runs by a schedule.",
    "download": "Fetch the files of a pushed project.",
    "enable": "Let a disabled schedule go on.",
    "errands": "List callbacks and other errands of runs.",
    "errors": "List files that could not be loaded.",
    "init": "Make a folder with a small project to begin with.",
    "kill": "Stop a run.",
    "logs": "Print the log of a task.",
    "mark": "Say that tasks or a run ended in a state.",
    "next": "Show when a workflow runs next, and why.",
    "pause": "Start no more runs and tasks of a workflow.",
    "pools": "List, set or delete pools of slots.",
    "projects": "List projects, or show one.",
    "providers": "Install or list Airflow's provider packages.",
    "push": "Make a folder the newest revision of a project.",
    "questions": "List what tasks ask people.",
    "rendered": "Print what the templates of a task were rendered to.",
    "reschedule": "Leave out times of a schedule.",
    "retry": "Run a run again, without what succeeded.",
    "runs": "List runs, newest first.",
    "scheduler": "Start due runs, retries and time limits.",
    "schedules": "List schedules.",
    "secrets": "List, set or delete secrets of projects, or rotate keys.",
    "sessions": "List runs as sessions, or show one.",
    "sla-misses": "List tasks and runs that were not done in time.",
    "standalone": "Scheduler, agent and triggerer in one, watching folders of workflows.",
    "start": "Start a run of a project's workflow for a time.",
    "status": "Show who is alive, what is late and why.",
    "tasks": "List the tasks of a run.",
    "trigger": "Start a run of a workflow now.",
    "triggerer": "Run what deferred tasks wait for.",
    "unpause": "Let a paused workflow go on.",
    "upload": "Make an archive the newest revision of a project.",
    "variables": "List, set or delete variables.",
    "version": "Print the version.",
    "why": "Say why a run or a task waits, runs or has ended.",
    "workflows": "List workflows.",
}

ALIASES = {
    "attempt": "attempts",
    "c": "check",
    "log": "logs",
    "new": "init",
    "project": "projects",
    "r": "run",
    "sched": "scheduler",
    "schedule": "schedules",
    "session": "sessions",
    "task": "tasks",
    "workflow": "workflows",
}
"""Other names of commands, which `digdag` has."""

ELSEWHERE = {
    "server": "`headrace standalone` is scheduler, agent and triggerer in one; on several machines use"
    " `headrace scheduler` and `headrace agent`",
    "migrate": "`headrace db upgrade` brings the database up to date",
    "selfupdate": "upgrade the package `headrace` by your package manager",
}
"""Commands of `digdag` that have no counterpart of the same kind, and what to do instead."""


class LazyCommands(click.Group):
    """Knows the names of all commands and imports the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        name = ALIASES.get(name, name)
        if name not in COMMANDS:
            return None
        command: click.Command = imports.take(f"headrace.cli.commands.{name.replace('-', '_')}").command
        return accept_digdag_options(command)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and args[0] not in ALIASES and not args[0].startswith("-"):
            nearest = did_you_mean(args[0], COMMANDS) or "`headrace --help` lists the commands"
            hint = ELSEWHERE.get(args[0], nearest)
            raise HeadraceUsage(f"there is no command `{args[0]}`", hint)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # From the table: importing every command for its help would take longer than all the rest.
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


class HeadraceUsage(HeadraceError):
    """A command line that makes no sense."""

    exit_code = USAGE_EXIT

    def __init__(self, message: str, hint: str | None) -> None:
        super().__init__(message, hint=hint)


def _print_version(ctx: click.Context, _parameter: click.Parameter, is_asked: bool) -> None:
    if is_asked:
        click.echo(VERSION)
        ctx.exit()


@click.command(cls=LazyCommands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Print the version."
)
def headrace() -> None:
    """Runs workflows that are written as Python DAGs or as Digdag projects."""


accept_digdag_options(headrace)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command and leave with its exit code."""
    imports.keep()
    _leave(run_command(arguments))


def _leave(code: int) -> NoReturn:
    """End the process as usual, but without taking it apart: that is a tenth of the time of a short command."""
    if any(not thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()):
        sys.exit(code)  # there is somebody to be waited for
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        # It was closed from the beginning, or nobody reads it any more.
        with contextlib.suppress(AttributeError, OSError, ValueError):
            stream.flush()
    os._exit(code)


def run_command(arguments: Sequence[str] | None = None) -> int:
    """Run a command; whatever goes wrong becomes a sentence on stderr."""
    try:
        code = headrace.main(
            list(arguments) if arguments is not None else None, prog_name="headrace", standalone_mode=False
        )
        if sys.stdout is not None:  # it is, for somebody who closed it
            sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except HeadraceError as error:
        return _complain(_sentence(error), error.hint, error.exit_code)
    except click.ClickException as error:
        if isinstance(error, _HELP):
            error.show()
            return USAGE_EXIT
        return _complain(*_of_click(error), USAGE_EXIT)
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPT_EXIT
    except BrokenPipeError:
        # Whoever read our output has had enough; nothing may be flushed into the closed pipe at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _FULL:
            return _complain(f"could not write: {(error.strerror or str(error)).lower()}", None, 1)
        if isinstance(error, UnicodeEncodeError):
            # An argument, or a text in a file, is the only way in for half of a surrogate pair.
            return _complain(f"expected text in UTF-8, got: {error.object!r:.100}", None, USAGE_EXIT)
        path = imports.take("headrace.cli.crash").report_crash(error)
        return _complain(
            f"headrace failed unexpectedly: {type(error).__name__}; the report is in `{path}`", None, CRASH_EXIT
        )


def _sentence(error: HeadraceError) -> str:
    detail = getattr(error, "detail", None)
    text = error.message if error.place is None else f"{error.message} (`{error.place}`)"
    return text if not detail else f"{text}\n{detail.rstrip()}"


def _of_click(error: click.ClickException) -> tuple[str, str | None]:
    if isinstance(error, click.NoSuchOption):
        options = [name for one in (error.ctx.command.params if error.ctx else ()) for name in one.opts]
        return f"there is no option `{error.option_name}`", did_you_mean(error.option_name, options)
    text = _in_plain_words(error.format_message().strip().rstrip(".").replace("'", "`"), error)
    return text[:1].lower() + text[1:], f"`{_shown_path(error)} --help` shows how it is used"


def _in_plain_words(text: str, error: click.ClickException) -> str:
    """For a number click names the type that it has for it, such as "integer range", and not what it allows."""
    words = next((words for words in _NUMBERS if text.endswith(words)), None)
    if words is None:
        return text
    kind = error.param.type if isinstance(error, click.BadParameter) and error.param is not None else None
    return text.removesuffix(words) + _NUMBERS[words] + _bounds(kind)


def _bounds(kind: object) -> str:
    if not isinstance(kind, click.IntRange | click.FloatRange) or kind.min is None:
        return ""
    return f" (at least {kind.min})" if kind.max is None else f" (from {kind.min} to {kind.max})"


def _shown_path(error: click.ClickException) -> str:
    """The command that the user typed; what it means by itself may be one that nobody types."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    while context is not None and context.command.hidden:
        context = context.parent
    return "headrace" if context is None else context.command_path


def _complain(message: str, hint: str | None, code: int) -> int:
    click.echo(f"error: {message}", err=True)
    if hint:
        click.echo(f"hint: {hint}", err=True)
    return code
