"""`headrace variables` with `list`, `get`, `set`, `delete`, `import` and `export`."""

from __future__ import annotations

import json
from typing import Any

import click

from headrace.authoring.dag.value_files import read_variables
from headrace.cli.asking import ask_for, write_private
from headrace.cli.named_values import delete_named, existing_option, import_named, vault_of
from headrace.cli.opening import opened, opened_or_begun
from headrace.cli.options import json_option, store_option
from headrace.cli.printing import print_json, print_table
from headrace.secrets import Vault


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
        vault = vault_of(here)
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
        value = vault_of(here).variable(name)
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
    with opened_or_begun(url) as here:
        vault_of(here).set_variable(name, given, description)
    click.echo(f"variable `{name}` is set")


@command.command("delete")
@click.argument("name")
@store_option
def delete_command(name: str, url: str | None) -> None:
    """Delete variable NAME."""
    delete_named("variable", name, url)


@command.command("import")
@click.argument("file")
@existing_option
@store_option
def import_command(file: str, existing: str, url: str | None) -> None:
    """Set the variables of FILE, a JSON, YAML or .env file of names and values."""
    import_named("variable", read_variables, _put, file, existing, url)


def _put(vault: Vault, name: str, given: tuple[str, str | None]) -> None:
    vault.set_variable(name, *given)


@command.command("export")
@click.argument("file")
@store_option
def export_command(file: str, url: str | None) -> None:
    """Write all variables with their values to FILE, readable for you only; `-` is stdout."""
    with opened(url) as here:
        entries = vault_of(here).entries("variable")
    values: dict[str, Any] = {
        one.name: {"value": one.value, "description": one.description} if one.description else one.value
        for one in entries
    }
    write_private(file, json.dumps(values, indent=4, ensure_ascii=False))
    click.echo(f"{len(entries)} variables are exported", err=True)
