"""`headrace retry`."""

from __future__ import annotations

from uuid import uuid4

import click

from headrace.actions.retry import Again, retry
from headrace.actions.start import Started
from headrace.cli.commands.start import report_started
from headrace.cli.local_run import go_on_to_end
from headrace.cli.opening import opened
from headrace.cli.options import given_params, json_option, params_file_option, params_option, store_option
from headrace.errors import UsageError
from headrace.store import list_attempts


@click.command("retry")
@click.argument("run")
@click.option(
    "--latest-revision", is_flag=True, help="With the newest version of the workflow, as without any of these."
)
@click.option("--keep-revision", is_flag=True, help="With the version that the attempt had.")
@click.option("--revision", help="With a pushed revision.")
@click.option("--all", "is_all", is_flag=True, help="Run every task again, also those that succeeded.")
@click.option("--resume", is_flag=True, help="Without what succeeded, as without any of these.")
@click.option("--resume-from", metavar="TASK", help="Run TASK again, and all that does not come before it.")
@click.option("--name", default="", help="What the attempt is called; else it gets a name of its own.")
@params_option
@params_file_option
@json_option
@store_option
@click.pass_context
def command(
    context: click.Context,
    run: str,
    latest_revision: bool,
    keep_revision: bool,
    revision: str | None,
    is_all: bool,
    resume: bool,
    resume_from: str | None,
    name: str,
    params: tuple[str, ...],
    params_file: str | None,
    as_json: bool,
    url: str | None,
) -> int:
    """Run RUN again as a new attempt that carries over what succeeded.

    RUN is an id, `latest`, a workflow's name for its newest run, or `ID.NUMBER` for one attempt.
    """
    _one_of({"--latest-revision": latest_revision, "--keep-revision": keep_revision, "--revision": revision})
    _one_of({"--all": is_all, "--resume": resume, "--resume-from": resume_from})
    given = given_params(context, params, params_file)
    with opened(url, may_be_private=True) as here:
        # Tasks see the name as `retry_attempt_name`, which is how they know that this is not the first attempt.
        called = name or str(uuid4())
        again = Again(not is_all, resume_from, keep_revision, revision, called, given, is_private=here.is_private)
        row = retry(here.store, here.clock, run, again)
        if not here.is_private:
            with here.store.read() as tx:
                attempt = list_attempts(tx, row.id)[0]
            report_started(here, Started(row, attempt), as_json=as_json)
            return 0
    return go_on_to_end(here.settings, row, as_json=as_json)


def _one_of(options: dict[str, object]) -> None:
    given = [name for name, value in options.items() if value]
    if len(given) > 1:
        raise UsageError(f"expected one of {' and '.join(f'`{name}`' for name in given)}, got both")
