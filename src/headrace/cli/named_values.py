"""What the commands for variables and for connections do alike: both are values of the vault that have a name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import click

from headrace.authoring.dag.exceptions import AirflowException
from headrace.cli.opening import Opened, opened, opened_or_begun
from headrace.errors import NotFoundError, UsageError, did_you_mean
from headrace.secrets import Vault, open_vault

Kind = Literal["variable", "connection"]

existing_option = click.option(
    "--existing", type=click.Choice(["overwrite", "skip", "fail"]), default="overwrite", show_default=True,
    help="What to do with names that exist already.",
)  # fmt: skip


def vault_of(here: Opened) -> Vault:
    return open_vault(here.settings, here.store, here.clock)


def delete_named(kind: Kind, name: str, url: str | None) -> None:
    """Delete one value, and say so."""
    with opened(url) as here:
        vault = vault_of(here)
        if not vault.delete(kind, name):
            raise NotFoundError(f"there is no {kind} `{name}`", hint=did_you_mean(name, vault.names(kind)))
    click.echo(f"{kind} `{name}` is deleted")


def import_named(
    kind: Kind,
    read: Callable[[Path], dict[str, Any]],
    put: Callable[[Vault, str, Any], None],
    file: str,
    existing: str,
    url: str | None,
) -> None:
    """Set the values of a file, as `existing` treats those whose names exist already, and say how many."""
    try:
        given = read(Path(file).expanduser())
    except AirflowException as error:
        raise UsageError(str(error)) from None
    with opened_or_begun(url) as here:
        vault = vault_of(here)
        chosen = _new_ones(given, vault.names(kind), existing, kind)
        for name, value in chosen.items():
            put(vault, name, value)
    click.echo(f"{len(chosen)} of {len(given)} {kind}s are set")


def _new_ones(given: dict[str, Any], present: list[str], existing: str, kind: Kind) -> dict[str, Any]:
    twice = [name for name in given if name in present]
    if twice and existing == "fail":
        raise UsageError(f"{kind} `{twice[0]}` exists already", hint="`--existing skip` or `--existing overwrite`")
    return {name: value for name, value in given.items() if existing == "overwrite" or name not in twice}
