"""`headrace connections` with `list`, `get`, `add`, `delete`, `import`, `export` and `test`."""

from __future__ import annotations

import json
from typing import Any

import click

from headrace.actions.trying_connections import try_connection
from headrace.authoring.dag.connection_forms import checked_fields, fields_of_text, uri_of
from headrace.authoring.dag.exceptions import AirflowException
from headrace.authoring.dag.value_files import read_connections
from headrace.cli.asking import ask_for, write_private
from headrace.cli.named_values import delete_named, existing_option, import_named, vault_of
from headrace.cli.opening import opened, opened_or_begun
from headrace.cli.options import json_option, store_option
from headrace.cli.printing import print_json, print_table
from headrace.errors import StateError, UsageError
from headrace.logs import hidden
from headrace.secrets import Vault


@click.group("connections")
def command() -> None:
    """How to reach other systems, for hooks and `Connection.get`."""


@command.command("list")
@json_option
@store_option
def list_command(as_json: bool, url: str | None) -> None:
    """List connections without their secrets."""
    with opened(url) as here:
        entries = vault_of(here).entries("connection")
    columns = ("name", "conn_type", "host", "port", "schema", "login", "description")
    rows = [(one.name, *(one.value.get(column) for column in columns[1:])) for one in entries]
    if as_json:
        print_json({"connections": [dict(zip(columns, row, strict=True)) for row in rows]})
    else:
        print_table(columns, rows)


@command.command("get")
@click.argument("name")
@click.option("--reveal", is_flag=True, help="Show the password and secret extra fields.")
@click.option("--uri", "as_uri", is_flag=True, help="As a URI, which holds the password; needs `--reveal`.")
@store_option
def get_command(name: str, reveal: bool, as_uri: bool, url: str | None) -> None:
    """Print connection NAME as JSON, its secrets as `***`."""
    if as_uri and not reveal:
        raise UsageError("a URI holds the password", hint="`--uri --reveal`")
    with opened(url) as here:
        fields = vault_of(here).connection(name)
    if as_uri:
        click.echo(uri_of(fields))
    else:
        print_json(fields if reveal else hidden(fields))


@command.command("add")
@click.argument("name")
@click.argument("text", metavar="[URI|JSON]", required=False)
@click.option("--conn-uri", help="All of it as a URI.")
@click.option("--conn-json", help="All of it as JSON.")
@click.option("--conn-type", help="What kind of system: `postgres`, `http` …")
@click.option("--conn-host", help="Where it is.")
@click.option("--conn-port", type=int, help="Its port.")
@click.option("--conn-login", help="Who logs in.")
@click.option("--conn-password", help="The password; `-` asks for it, or reads it from stdin.")
@click.option("--conn-schema", help="The schema, database or path.")
@click.option("--conn-extra", help="More, as a JSON object.")
@click.option("--conn-description", help="What it is for.")
@store_option
def add_command(
    name: str, text: str | None, conn_uri: str | None, conn_json: str | None, url: str | None, **parts: Any
) -> None:
    """Create or replace connection NAME.

    It is given as a URI or JSON, or in parts. Without any of these it is asked for, or read from stdin, and so does
    not get into the shell's history.
    """
    whole = text or conn_uri or conn_json
    given = {part.removeprefix("conn_"): value for part, value in parts.items() if value is not None}
    if whole is not None and given:
        raise UsageError("a connection is given either as a whole or in parts")
    try:
        fields = _from_parts(name, given) if given else fields_of_text(whole or ask_for(f"URI or JSON of `{name}`"))
    except AirflowException as error:
        raise UsageError(f"could not read connection `{name}`: {error}") from None
    with opened_or_begun(url) as here:
        vault_of(here).set_connection(name, fields)
    click.echo(f"connection `{name}` is set")


@command.command("delete")
@click.argument("name")
@store_option
def delete_command(name: str, url: str | None) -> None:
    """Delete connection NAME."""
    delete_named("connection", name, url)


@command.command("import")
@click.argument("file")
@existing_option
@store_option
def import_command(file: str, existing: str, url: str | None) -> None:
    """Set the connections of FILE: JSON, YAML or .env, each as an object or a URI."""
    import_named("connection", read_connections, Vault.set_connection, file, existing, url)


@command.command("export")
@click.argument("file")
@store_option
def export_command(file: str, url: str | None) -> None:
    """Write all connections with their secrets to FILE, readable for you only; `-` is stdout."""
    with opened(url) as here:
        entries = vault_of(here).entries("connection")
    write_private(file, json.dumps({one.name: one.value for one in entries}, indent=4, ensure_ascii=False))
    click.echo(f"{len(entries)} connections are exported", err=True)


@command.command("test")
@click.argument("name")
@store_option
def test_command(name: str, url: str | None) -> None:
    """Let the hook of connection NAME try it, in a process of its own."""
    with opened(url) as here:
        fields = vault_of(here).connection(name)
    is_reachable, message = try_connection(fields)
    if not is_reachable:
        raise StateError(f"connection `{name}` does not work: {message}")
    click.echo(message)


def _from_parts(name: str, given: dict[str, Any]) -> dict[str, Any]:
    if given.get("password") == "-":
        given["password"] = ask_for(f"password of `{name}`")
    if "type" not in given:
        raise AirflowException("it needs a `--conn-type`")
    return checked_fields({{"type": "conn_type"}.get(part, part): value for part, value in given.items()})
