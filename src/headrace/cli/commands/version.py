"""`headrace version`."""

from __future__ import annotations

import click

from headrace.release import VERSION


@click.command("version")
def command() -> None:
    """Print the version."""
    click.echo(VERSION)
