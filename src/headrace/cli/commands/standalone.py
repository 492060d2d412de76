"""`headrace standalone`."""

from __future__ import annotations

import click

from headrace.actions.observing import observed
from headrace.actions.parts import Parts
from headrace.actions.serving import serve_agent, serve_projects, serve_scheduler, serve_triggerer
from headrace.cli.options import store_option
from headrace.cli.serving import drain_option, metrics_option, project_folders, serve
from headrace.errors import UsageError
from headrace.settings import load_settings
from headrace.store import list_projects


@click.command("standalone")
@click.argument("folders", nargs=-1)
@click.option("--projects", multiple=True, metavar="NAME=PATH", help="A folder of workflows and its project's name.")
@click.option("--slots", type=click.IntRange(1), help="How many tasks run at the same time; else `agent.slots`.")
@drain_option
@metrics_option
@store_option
def command(
    folders: tuple[str, ...],
    projects: tuple[str, ...],
    slots: int | None,
    drain_seconds: float | None,
    metrics_port: int | None,
    url: str | None,
) -> None:
    """Scheduler, agent and triggerer in one, watching FOLDERS of workflows; without any, the `projects` settings.

    Projects that were pushed run as well; then it needs no folder at all.
    """
    settings = load_settings()
    watched = project_folders((*folders, *projects), settings)
    parts = Parts.open(settings, url)
    pushed = _pushed_projects(parts)
    if not watched and not pushed:
        parts.store.dispose()
        raise UsageError("there is no folder of workflows to watch", hint="`headrace standalone FOLDER`")
    agent = serve_agent(parts, slots=slots, drain_seconds=drain_seconds)
    syncs = [serve_projects(parts, watched)] if watched else []
    scheduler = serve_scheduler(parts, folders=watched)
    serving = observed(parts, [agent, serve_triggerer(parts), scheduler, *syncs], metrics_port)
    count = slots or settings.agent.slots
    shown = ", ".join(f"`{name}`" for name in (*(folder.name for folder in watched), *pushed))
    serve(
        serving, f"headrace runs {shown} with {count} slots on `{parts.store.database.display_name}`; Ctrl-C stops it"
    )


def _pushed_projects(parts: Parts) -> list[str]:
    with parts.store.read() as tx:
        return [row.name for row in list_projects(tx) if row.revision is not None]
