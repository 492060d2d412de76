"""`headrace triggerer`."""

from __future__ import annotations

import click

from headrace.actions.observing import observed
from headrace.actions.parts import Parts
from headrace.actions.serving import serve_triggerer
from headrace.cli.options import store_option
from headrace.cli.serving import metrics_option, serve
from headrace.settings import load_settings


@click.command("triggerer")
@click.option("--name", default="", help="How it is called; else by host and process.")
@metrics_option
@store_option
def command(name: str, metrics_port: int | None, url: str | None) -> None:
    """Run what deferred tasks wait for. Any number of triggerers may share a store."""
    settings = load_settings()
    parts = Parts.open(settings, url)
    server = serve_triggerer(parts, name, is_announced=True)
    place = parts.store.database.display_name
    serve(
        observed(parts, [server], metrics_port),
        f"a triggerer with room for {settings.triggerer.capacity} triggers serves `{place}`; Ctrl-C stops it",
    )
