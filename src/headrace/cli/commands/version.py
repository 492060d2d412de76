"""`headrace version`."""

from __future__ import annotations

from importlib.metadata import version

import click


@click.command("version")
def command() -> None:
    """Print the version."""
    click.echo(version("headrace"))
