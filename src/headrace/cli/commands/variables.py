"""`headrace variables` with `list`, `get`, `set`, `delete`, `import` and `export`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from headrace.authoring.dag.exceptions import AirflowException
from headrace.authoring.dag.value_files import read_variables
from headrace.cli.asking import ask_for, write_private
from headrace.cli.opening import Opened, opened
from headrace.cli.options import json_option, store_option
from headrace.cli.printing import print_json, print_table
from headrace.errors import NotFoundError, UsageError, did_you_mean
from headrace.secrets import Vault, open_vault

existing_option = click.option(
    "--existing", type=click.Choice(["overwrite", "skip", "fail"]), default="overwrite", show_default=True,
    help="What to do with names that exist already.",
)  # fmt: skip


@click.group("variables")
def command() -> None:
    """Named values that DAG files read with `Variable.get` and `{{ var.value.NAME }}`."""


@command.command("list")
@click.option("--values", "is_open", is_flag=True, help="Show the values, too.")
@json_option
@store_option
def list_command(is_open: bool, as_json: bool, url: str | None) -> None:
    """List variables; their values only if asked for."""
    with opened(url) as here:
        vault = _vault(here)
        rows = [(one.name, one.value) for one in vault.entries("variable")] if is_open else []
        names = vault.names("variable")
    columns = ("name", "value") if is_open else ("name",)
    shown = rows if is_open else [(name,) for name in names]
    if as_json:
        print_json({"variables": [dict(zip(columns, row, strict=True)) for row in shown]})
    else:
        print_table(columns, shown)


@command.command("get")
@click.argument("name")
@json_option
@store_option
def get_command(name: str, as_json: bool, url: str | None) -> None:
    """Print the value of variable NAME."""
    with opened(url) as here:
        value = _vault(here).variable(name)
    if as_json:
        print_json({"name": name, "value": value})
    else:
        click.echo(value)


@command.command("set")
@click.argument("name")
@click.argument("value", required=False)
@click.option("--description", help="What it is for.")
@store_option
def set_command(name: str, value: str | None, description: str | None, url: str | None) -> None:
    """Create or replace variable NAME. Without VALUE it is asked for, or read from stdin."""
    given = ask_for(f"value of `{name}`") if value is None else value
    with opened(url) as here:
        _vault(here).set_variable(name, given, description)
    click.echo(f"variable `{name}` is set")


@command.command("delete")
@click.argument("name")
@store_option
def delete_command(name: str, url: str | None) -> None:
    """Delete variable NAME."""
    with opened(url) as here:
        vault = _vault(here)
        if not vault.delete("variable", name):
            raise NotFoundError(f"there is no variable `{name}`", hint=did_you_mean(name, vault.names("variable")))
    click.echo(f"variable `{name}` is deleted")


@command.command("import")
@click.argument("file")
@existing_option
@store_option
def import_command(file: str, existing: str, url: str | None) -> None:
    """Set the variables of FILE, a JSON, YAML or .env file of names and values."""
    try:
        given = read_variables(Path(file).expanduser())
    except AirflowException as error:
        raise UsageError(str(error)) from None
    with opened(url) as here:
        vault = _vault(here)
        chosen = new_ones(given, vault.names("variable"), existing, "variable")
        for name, (value, description) in chosen.items():
            vault.set_variable(name, value, description)
    click.echo(f"{len(chosen)} of {len(given)} variables are set")


@command.command("export")
@click.argument("file")
@store_option
def export_command(file: str, url: str | None) -> None:
    """Write all variables with their values to FILE, readable for you only; `-` is stdout."""
    with opened(url) as here:
        entries = _vault(here).entries("variable")
    values: dict[str, Any] = {
        one.name: {"value": one.value, "description": one.description} if one.description else one.value
        for one in entries
    }
    write_private(file, json.dumps(values, indent=4, ensure_ascii=False))
    click.echo(f"{len(entries)} variables are exported", err=True)


def new_ones(given: dict[str, Any], present: list[str], existing: str, what: str) -> dict[str, Any]:
    """What an import sets, by how it treats names that exist already."""
    twice = [name for name in given if name in present]
    if twice and existing == "fail":
        raise UsageError(f"{what} `{twice[0]}` exists already", hint="`--existing skip` or `--existing overwrite`")
    return {name: value for name, value in given.items() if existing == "overwrite" or name not in twice}


def _vault(here: Opened) -> Vault:
    return open_vault(here.settings, here.store, here.clock)
