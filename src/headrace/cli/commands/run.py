"""`headrace run`."""

from __future__ import annotations

import sys
from importlib import import_module

import click

from headrace.actions.executors import LateBroker, LoadingAnswers, local_executor
from headrace.cli.options import json_option, params_option, session_option
from headrace.cli.parsing import Parsing
from headrace.settings import load_settings


@click.command("run")
@click.argument("file")
@click.argument("workflow", required=False)
@params_option
@session_option
@click.option("--slots", type=click.IntRange(1), help="How many tasks run at the same time; else `agent.slots`.")
@click.option("--isolation", type=click.Choice(["process", "reuse"]), help="Else the `agent.isolation` setting.")
@click.option("--store", "url", metavar="URL", help="Database; without it one that only `headrace run` uses.")
@json_option
def command(
    file: str,
    workflow: str | None,
    params: tuple[str, ...],
    session: str | None,
    slots: int | None,
    isolation: str | None,
    url: str | None,
    as_json: bool,
) -> int:
    """Run one WORKFLOW of FILE to its end, without a server.

    Progress goes to stderr. Leaves with 0 if the run succeeded, 1 if it failed, 2 if the file, the workflow or an
    option is wrong, and 130 after Ctrl-C; a second Ctrl-C does not wait for the tasks to stop.
    """
    settings = load_settings()
    broker = LateBroker()
    parsing = Parsing(file, settings.parser, LoadingAnswers(settings, broker))
    executor = local_executor(settings, broker, slots)
    executor.prepare(parsing.source)
    # The file is parsed in one process and loaded for its tasks in another by now; the database library is imported
    # while that goes on.
    local_run = import_module("headrace.cli.local_run")
    wish = local_run.Wish(workflow, params, session, slots, isolation, url, as_json and sys.stdout is not None)
    code: int = local_run.run_to_end(settings, parsing, local_run.WarmStart(executor, broker), wish)
    return code
