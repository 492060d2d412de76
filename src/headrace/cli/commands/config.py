"""`headrace config list` and `headrace config get`."""

from __future__ import annotations

import click

from headrace.cli.options import json_option
from headrace.cli.printing import print_json, print_table
from headrace.errors import NotFoundError, did_you_mean
from headrace.settings import SettingValue, load_settings, setting_values
from headrace.user_environment import without_password

_HIDDEN = ("secrets.keys",)


@click.group("config")
def command() -> None:
    """Settings as they are, and where each comes from."""


@command.command("list")
@json_option
def list_command(as_json: bool) -> None:
    """List every setting with its value and what set it."""
    values, notices = setting_values(), load_settings().notices
    if as_json:
        print_json({"settings": [_described(one) for one in values], "notices": list(notices)})
        return
    print_table(("setting", "value", "set by"), [(one.name, _shown(one), one.source) for one in values])
    for notice in notices:
        click.echo(f"warning: {notice}", err=True)


@command.command("get")
@click.argument("name")
@json_option
def get_command(name: str, as_json: bool) -> None:
    """Print the value of setting NAME."""
    values = {one.name: one for one in setting_values()}
    if name not in values:
        raise NotFoundError(f"there is no setting `{name}`", hint=did_you_mean(name, values))
    if as_json:
        print_json(_described(values[name]))
    else:
        click.echo(_shown(values[name]))


def _described(one: SettingValue) -> dict[str, str]:
    return {"name": one.name, "value": _shown(one), "set_by": one.source}


def _shown(one: SettingValue) -> str:
    if one.name in _HIDDEN and one.value:
        return "***"
    return without_password(one.value) if one.name == "store" else one.value
