"""`headrace scheduler`."""

from __future__ import annotations

import click

from headrace.actions.parts import Parts
from headrace.actions.serving import Server, Serving, serve_projects, serve_scheduler
from headrace.cli.options import store_option
from headrace.cli.serving import project_folder, serve
from headrace.settings import load_settings


@click.command("scheduler")
@click.option("--projects", multiple=True, metavar="NAME=PATH", help="Also save the workflows of this folder.")
@click.option("--name", default="", help="How it is called; else by host and process.")
@store_option
def command(projects: tuple[str, ...], name: str, url: str | None) -> None:
    """Start due runs, retries and time limits. Any number of schedulers may share a store."""
    settings = load_settings()
    watched = [project_folder(text) for text in projects] or list(settings.projects)
    parts = Parts.open(settings, url)
    servers: list[Server] = [serve_scheduler(parts, name)]
    if watched:
        servers.append(serve_projects(parts, watched))
    serve(Serving(parts, servers), f"a scheduler works on `{parts.store.database.display_name}`; Ctrl-C stops it")
