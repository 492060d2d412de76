"""`headrace providers` with `install` and `list`."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click

from headrace.actions.installing_providers import Sources, install_providers
from headrace.actions.provider_packages import ProviderPackage, installed_providers
from headrace.cli.options import json_option
from headrace.cli.printing import print_json, print_table


@click.group("providers")
def command() -> None:
    """Airflow's provider packages, which run here without Airflow."""


@command.command("install")
@click.argument("names", nargs=-1, required=True, metavar="NAME…")
@click.option(
    "--target", type=click.Path(path_type=Path), help="Into this folder instead of this Python's environment."
)
@click.option("--find-links", multiple=True, metavar="FOLDER", help="Also look for wheels in this folder.")
@click.option("--no-index", "without_index", is_flag=True, help="Look nowhere else.")
@click.option("--installer", type=click.Choice(["uv", "pip"]), help="What installs; else uv if it is there, or pip.")
@json_option
def install_command(
    names: tuple[str, ...],
    target: Path | None,
    find_links: tuple[str, ...],
    without_index: bool,
    installer: str | None,
    as_json: bool,
) -> None:
    """Install providers and what they require, but not Airflow.

    A NAME is that of a provider, with extras and versions as pip spells them: `sftp`, `amazon[aiobotocore]`,
    `"http>=6,<7"`.
    """
    before = set(_present(target))
    install_providers(names, Sources(target, find_links, without_index), installer)
    after = _present(target)
    if as_json:
        print_json({"providers": [dataclasses.asdict(one) for one in after]})
        return
    for one in after:
        click.echo(f"{one.name} {one.version}" + (" (was there already)" if one in before else ""))


@command.command("list")
@json_option
def list_command(as_json: bool) -> None:
    """List the provider packages that are installed."""
    found = installed_providers()
    if as_json:
        print_json({"providers": [dataclasses.asdict(one) for one in found]})
    elif not found:
        click.echo("no provider package is installed; `headrace providers install NAME` installs one")
    else:
        print_table(("name", "version", "summary"), [(one.name, one.version, one.summary) for one in found])


def _present(target: Path | None) -> list[ProviderPackage]:
    return installed_providers(None if target is None else [str(target)])
