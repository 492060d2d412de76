"""`headrace scheduler`."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click

from headrace.actions.observing import observed
from headrace.actions.parts import Parts
from headrace.actions.serving import Server, serve_agent, serve_projects, serve_scheduler, serve_triggerer
from headrace.cli.options import store_option
from headrace.cli.serving import metrics_option, project_folder, project_folders, serve
from headrace.errors import UsageError
from headrace.settings import ProjectFolder, Settings, load_settings


@click.command("scheduler")
@click.option("--projects", multiple=True, metavar="NAME=PATH", help="Also save the workflows of this folder.")
@click.option(
    "--project", "folder", metavar="DIR",
    help="Run the workflows of this folder by their schedules, with an agent and a database of its own.",
)  # fmt: skip
@click.option("-o", "--database", "database_dir", metavar="DIR", help="Where that database is kept; else it is not.")
@click.option("-m", "--memory", is_flag=True, help="Do not keep that database, as without `-o`.")
@click.option("--max-task-threads", "slots", type=click.IntRange(1), help="How many tasks it runs at the same time.")
@click.option("--name", default="", help="How it is called; else by host and process.")
@metrics_option
@store_option
def command(
    projects: tuple[str, ...],
    folder: str | None,
    database_dir: str | None,
    memory: bool,
    slots: int | None,
    name: str,
    metrics_port: int | None,
    url: str | None,
) -> None:
    """Start due runs, retries and time limits. Any number of schedulers may share a store.

    With `--project` it is a scheduler, an agent and a database in one, for one folder.
    """
    settings = load_settings()
    if folder is not None:
        serve_folder(settings, project_folder(folder), database_dir, slots, url, metrics_port)
        return
    if database_dir is not None or memory or slots is not None:
        raise UsageError("`-o`, `-m` and `--max-task-threads` go with `--project`")
    watched = project_folders(projects, settings)
    parts = Parts.open(settings, url)
    servers: list[Server] = [serve_scheduler(parts, name, watched)]
    if watched:
        servers.append(serve_projects(parts, watched))
    serve(
        observed(parts, servers, metrics_port),
        f"a scheduler works on `{parts.store.database.display_name}`; Ctrl-C stops it",
    )


def serve_folder(
    settings: Settings,
    folder: ProjectFolder,
    database_dir: str | None,
    slots: int | None,
    url: str | None,
    metrics_port: int | None = None,
) -> None:
    """Everything that the schedules of one folder need, until somebody stops it."""
    with tempfile.TemporaryDirectory(prefix="headrace-") as passing:
        place = Path(database_dir or passing).absolute()
        place.mkdir(parents=True, exist_ok=True)
        parts = Parts.open(settings, url or f"sqlite:///{place}/scheduler.db")
        agent = serve_agent(parts, slots=slots)
        serving = observed(
            parts,
            [agent, serve_triggerer(parts), serve_scheduler(parts, folders=[folder]), serve_projects(parts, [folder])],
            metrics_port,
        )
        serve(
            serving, f"the schedules of `{folder.path}` run on `{parts.store.database.display_name}`; Ctrl-C stops it"
        )
