"""`headrace start`."""

from __future__ import annotations

import click

from headrace.actions.start import Started, Wanted, start
from headrace.cli.blocks import describe_attempt, print_attempt
from headrace.cli.commands.runs import describe
from headrace.cli.opening import Opened, opened
from headrace.cli.options import given_params, json_option, params_file_option, params_option, store_option
from headrace.cli.printing import print_json
from headrace.store import Definitions


@click.command("start")
@click.argument("project")
@click.argument("workflow")
@click.option(
    "--session", required=True, metavar="TIME", help="A date, or `now`, `hourly`, `daily`, `last`, `schedule`."
)
@click.option("--revision", help="A pushed revision; without it the newest.")
@click.option("--retry", "attempt_name", default="", metavar="NAME", help="Another attempt for the time, by this name.")
@click.option("-d", "--dry-run", "is_dry", is_flag=True, help="Say what would be started and start nothing.")
@params_option
@params_file_option
@json_option
@store_option
@click.pass_context
def command(
    context: click.Context,
    project: str,
    workflow: str,
    session: str,
    revision: str | None,
    attempt_name: str,
    is_dry: bool,
    params: tuple[str, ...],
    params_file: str | None,
    as_json: bool,
    url: str | None,
) -> None:
    """Start a run of WORKFLOW of PROJECT for a time. There is one run for each time."""
    wanted = Wanted(project, workflow, session, revision, attempt_name, given_params(context, params, params_file))
    with opened(url) as here:
        report_started(here, start(here.store, here.clock, wanted, is_dry=is_dry), is_dry=is_dry, as_json=as_json)


def report_started(here: Opened, started: Started, *, is_dry: bool = False, as_json: bool = False) -> None:
    """Print an attempt that was started, or would be."""
    run, attempt = started
    if as_json:
        print_json({**describe(run), "attempt_id": attempt.label, "attempt": describe_attempt(attempt)})
        return
    click.echo("Session attempt (dry run, nothing was started):" if is_dry else "Started a session attempt:")
    print_attempt(run, attempt, _timezone(here, attempt.version_id))
    if not is_dry:
        click.echo(f"* `headrace session {run.id}` shows the session")
        click.echo(f"* `headrace tasks {attempt.label}` and `headrace logs {attempt.label}` show its tasks and logs")


def _timezone(here: Opened, version_id: int) -> str:
    """The time zone in which a workflow's session times are shown."""
    with here.store.read() as tx:
        return tx.shared(Definitions).version(tx, version_id).workflow.timezone
