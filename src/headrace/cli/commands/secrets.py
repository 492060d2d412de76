"""`headrace secrets`, in the forms of `digdag secrets`, and what is done with the keys."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import click

from headrace.cli.asking import ask_for, read_stdin, read_text
from headrace.cli.opening import opened, opened_or_begun
from headrace.cli.options import json_option, store_option
from headrace.cli.printing import print_json, print_table
from headrace.errors import NotFoundError, UsageError
from headrace.secrets import LocalSecrets, Vault, check_secret_name, new_key, open_vault
from headrace.settings import load_settings


class _SeveralNames(click.Group):
    """Lets `--set a b` stand for `--set a --set b`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, list(_spelled_out(args)))


def _spelled_out(args: list[str]) -> Iterator[str]:
    option = None
    has_value = True
    for word in args:
        if word.startswith("--") or (word.startswith("-") and word != "-"):
            option, has_value = (word if word in ("--set", "--delete") else None), False
        elif option is not None and has_value:
            yield option
        yield word
        has_value = has_value or not word.startswith("-")


@click.group("secrets", cls=_SeveralNames, invoke_without_command=True)
@click.option("--project", metavar="PROJECT", help="Whose secrets.")
@click.option("--local", "is_local", is_flag=True, help="Secrets of yours on this machine, for every project.")
@click.option(
    "--set", "given", multiple=True, metavar="KEY…",
    help="KEY asks for the value or reads it from stdin; also KEY=VALUE, KEY=@FILE, KEY=-, and @FILE or @- with JSON.",
)  # fmt: skip
@click.option("--delete", "deleted", multiple=True, metavar="KEY…", help="Delete secrets.")
@click.option("--list", "_is_list", is_flag=True, help="List the names, which is done without any option, too.")
@json_option
@store_option
@click.pass_context
def command(
    context: click.Context,
    project: str | None,
    is_local: bool,
    given: tuple[str, ...],
    deleted: tuple[str, ...],
    _is_list: bool,
    as_json: bool,
    url: str | None,
) -> None:
    """List, set or delete secrets of a project, or seal everything with a new key.

    Their values are for tasks only and cannot be printed.
    """
    context.obj = url
    if context.invoked_subcommand is not None:
        return
    if (project is None) != is_local:
        raise UsageError("expected either `--project PROJECT` or `--local`")
    if given and deleted:
        raise UsageError("secrets are either set or deleted")
    values = dict(_values(given))
    if is_local:
        local = LocalSecrets(load_settings().secrets.local_dir.expanduser())
        _do(values, deleted, as_json, local.set, local.delete, local.names)
        return
    with opened_or_begun(url) if values else opened(url) as here:
        vault, name = open_vault(here.settings, here.store, here.clock), project or ""
        _do(
            values,
            deleted,
            as_json,
            lambda key, value: vault.set_secret(name, key, value),
            lambda key: vault.delete_secret(name, key),
            lambda: vault.secret_names(name),
        )


@command.command("rotate")
@store_option
@click.pass_obj
def rotate_command(outer: str | None, url: str | None) -> None:
    """Seal all variables, connections and secrets with the newest key.

    A key file gets a new key. Keys of the `secrets.keys` setting are yours to add: put the new one first, rotate, then
    take the old one away.
    """
    with opened(url or outer) as here:
        vault: Vault = open_vault(here.settings, here.store, here.clock)
        count = vault.rotate()
    click.echo(f"{count} variables, connections and secrets are sealed with the newest key")


@command.command("new-key")
def new_key_command() -> None:
    """Print a new key for the `secrets.keys` setting."""
    click.echo(new_key())


def _do(
    values: dict[str, str],
    deleted: tuple[str, ...],
    as_json: bool,
    set_one: Callable[[str, str], None],
    delete_one: Callable[[str], bool],
    names: Callable[[], list[str]],
) -> None:
    for key, value in values.items():
        set_one(key, value)
        click.echo(f"secret `{key}` is set", err=True)
    for key in deleted:
        if not delete_one(key):
            raise NotFoundError(f"there is no secret `{key}`")
        click.echo(f"secret `{key}` is deleted", err=True)
    if values or deleted:
        return
    if as_json:
        print_json({"secrets": names()})
    else:
        print_table(("secret",), [(name,) for name in names()])


def _values(given: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for one in given:
        if one.startswith("@"):
            yield from _from_json(one[1:])
            continue
        key, equals, value = one.partition("=")
        check_secret_name(key)
        if not equals:
            yield key, ask_for(f"value of `{key}`")
        elif value == "-":
            yield key, read_stdin()
        elif value.startswith("@"):
            yield key, read_text(value[1:])
        else:
            yield key, value


def _from_json(path: str) -> Iterator[tuple[str, str]]:
    text = read_stdin() if path == "-" else read_text(path)
    try:
        content = json.loads(text)
    except ValueError as error:
        raise UsageError(f"expected secrets as a JSON object: {error}") from None
    if not isinstance(content, dict) or not all(isinstance(value, str) for value in content.values()):
        raise UsageError("expected secrets as a JSON object of texts")
    for key, value in content.items():
        yield check_secret_name(key), value
