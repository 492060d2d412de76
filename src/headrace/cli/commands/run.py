"""`headrace run`."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any

import click

from headrace.actions.executors import LateBroker, LoadingAnswers, local_executor
from headrace.authoring import language_of
from headrace.cli.importing import imports
from headrace.cli.options import given_params, json_option, params_file_option, params_option, partition_option
from headrace.cli.parsing import Parsing
from headrace.cli.task_output import TaskOutput
from headrace.errors import UsageError
from headrace.settings import Settings, load_settings

_SHOW_PARAMS = "HEADRACE_TASK_SHOW_PARAMS"


@click.command("run")
@click.argument("file")
@click.argument("names", nargs=-1, metavar="[WORKFLOW] [+TASK]")
@click.option("--project", metavar="DIR", help="The project's folder; without it the one that FILE is in.")
@params_option
@params_file_option
@click.option(
    "-t", "--session", "--logical-date", "session", metavar="TIME",
    help="What the run is for: a date, or `now`, `hourly`, `daily`, `schedule`, `last`. Without it: `last` for a `.dig`"
    " file, `now` for others.",
)  # fmt: skip
@partition_option
@click.option("-a", "--rerun", "is_rerun", is_flag=True, help="Also run what was done before for the same time.")
@click.option("-s", "--start", metavar="TASK", help="Run TASK, and all that does not come before it, again.")
@click.option("-g", "--goal", metavar="TASK", help="Run TASK again, and what comes before it; leave out the rest.")
@click.option("-e", "--end", metavar="TASK", help="Run only what comes before TASK.")
@click.option("-o", "--save", "state_dir", metavar="DIR", help="Where to keep what was done; else the home folder.")
@click.option("--no-save", "is_unsaved", is_flag=True, help="Begin anew, and do not go on with this run later.")
@click.option("-d", "--dry-run", "is_dry", is_flag=True, help="Call no operator.")
@click.option("-E", "--show-params", is_flag=True, help="Write the parameters of each task to its log.")
@click.option("-O", "--task-log", "logs_dir", metavar="DIR", help="Where task logs go; else `logs_dir`.")
@click.option(
    "--slots", "--max-task-threads", "slots", type=click.IntRange(1),
    help="How many tasks run at the same time; else `agent.slots`.",
)  # fmt: skip
@click.option("--isolation", type=click.Choice(["process", "reuse"]), help="Else the `agent.isolation` setting.")
@click.option("--store", "url", metavar="URL", help="Database; without it one that only `headrace run` uses.")
@json_option
@click.pass_context
def command(
    context: click.Context,
    /,
    file: str,
    names: tuple[str, ...],
    project: str | None,
    params: tuple[str, ...],
    params_file: str | None,
    is_unsaved: bool,
    state_dir: str | None,
    show_params: bool,
    logs_dir: str | None,
    slots: int | None,
    isolation: str | None,
    url: str | None,
    as_json: bool,
    **wish: Any,
) -> int:
    """Run one WORKFLOW of FILE to its end, without a server.

    A `.dig` file that was run before for the same time goes on where it stopped: what succeeded is not run again,
    unless `--rerun` asks for it. With `+TASK`, only this task is run.

    What tasks print goes to stdout, unless `--json` is given; progress goes to stderr. Leaves with 0 if the run
    succeeded, 1 if it failed, 2 if the file, the workflow or an option is wrong, and 130 after Ctrl-C; a second
    Ctrl-C does not wait for the tasks to stop.
    """
    settings = _settings(state_dir, logs_dir, url)
    given = given_params(context, params, params_file)
    broker = LateBroker()
    parsing = Parsing(file, settings.parser, project, LoadingAnswers(settings, broker))
    output = TaskOutput() if sys.stdout is not None and not as_json else None
    executor = local_executor(settings, broker, slots, {_SHOW_PARAMS: "1"} if show_params else None, output)
    executor.prepare(parsing.source)
    # The file is parsed in one process and loaded for its tasks in another by now; the database library is imported
    # while that goes on.
    local_run = imports.take("headrace.cli.local_run")
    workflow, task = _chosen(names)
    keeps_sessions = language_of(parsing.source.file).keeps_sessions
    wish["session"] = wish["session"] or ("last" if keeps_sessions else None)
    wish["is_saved"] = keeps_sessions and not is_unsaved and url is None
    local = local_run.LocalWish(params=given, task=task, **wish)
    whole = local_run.Wish(workflow, local, slots, isolation, url, as_json and sys.stdout is not None)
    code: int = local_run.run_to_end(settings, parsing, local_run.WarmStart(executor, broker, output), whole)
    return code


def _chosen(names: tuple[str, ...]) -> tuple[str | None, str | None]:
    """The workflow and the task that were named."""
    workflows = [name for name in names if not name.startswith("+")]
    tasks = [name for name in names if name.startswith("+")]
    if len(workflows) > 1 or len(tasks) > 1:
        raise UsageError(f"expected at most one workflow and one `+task`, got: {' '.join(names)}")
    return workflows[0] if workflows else None, tasks[0] if tasks else None


def _settings(state_dir: str | None, logs_dir: str | None, url: str | None) -> Settings:
    settings = load_settings()
    if state_dir is not None and url is not None:
        raise UsageError("`--save` and `--store` both say where runs are kept", hint="leave out one of them")
    changes: dict[str, Any] = {}
    if state_dir is not None:
        changes["home"] = Path(state_dir).absolute()
    if logs_dir is not None:
        changes["logs_dir"] = Path(logs_dir).absolute()
    return dataclasses.replace(settings, **changes)
