"""`headrace agent`."""

from __future__ import annotations

import click

from headrace.actions.observing import observed
from headrace.actions.parts import Parts
from headrace.actions.serving import serve_agent
from headrace.cli.options import store_option
from headrace.cli.serving import drain_option, metrics_option, serve
from headrace.errors import UsageError
from headrace.settings import load_settings


@click.command("agent")
@click.option("--slots", type=click.IntRange(1), help="How many tasks run at the same time; else `agent.slots`.")
@click.option("--queues", metavar="NAME,NAME", help="Which queues it serves; else `agent.queues`.")
@click.option("--name", default="", help="How it is called; else by host and process.")
@drain_option
@metrics_option
@store_option
def command(
    slots: int | None,
    queues: str | None,
    name: str,
    drain_seconds: float | None,
    metrics_port: int | None,
    url: str | None,
) -> None:
    """Run tasks for the schedulers of a store."""
    settings = load_settings()
    served = tuple(part.strip() for part in queues.split(",") if part.strip()) if queues is not None else None
    if served == ():
        raise UsageError(f"expected names of queues, got: `{queues}`")
    parts = Parts.open(settings, url)
    agent = serve_agent(parts, slots=slots, queues=served, name=name, drain_seconds=drain_seconds)
    shown = ", ".join(f"`{queue}`" for queue in served or settings.agent.queues)
    place = parts.store.database.display_name
    serve(observed(parts, [agent], metrics_port), f"an agent serves {shown} of `{place}`; Ctrl-C stops it")
