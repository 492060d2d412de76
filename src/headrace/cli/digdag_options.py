"""Options that every `digdag` command takes, so that scripts written for it need no change.

Every command of ours takes them as well, except where it has an option of that name itself. They are not shown in its
help: what they do, if anything, is said in the guide.
"""

from __future__ import annotations

import logging
from importlib import import_module
from typing import Any

import click

from headrace.errors import UsageError

_LEVELS = {"error": logging.ERROR, "warn": logging.WARNING, "info": logging.INFO, "debug": logging.DEBUG, "trace": 5}
_PROPERTIES = "headrace.properties"


def accept_digdag_options(command: click.Command) -> click.Command:
    """Add the options to a command, once."""
    if not any(parameter.name == "digdag_log" for parameter in command.params):
        taken = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
        for option in _options():
            option.opts = [name for name in option.opts if name not in taken]
            if option.opts:
                command.params.append(option)
    return command


def common_params(context: click.Context) -> dict[str, Any]:
    """The parameters that a properties file or `-X` gives: the weakest of all."""
    properties: dict[str, str] = context.find_root().meta.get(_PROPERTIES, {})
    if not properties:
        return {}
    found: dict[str, Any] = import_module("headrace.cli.params_files").params_of_properties(properties)
    return found


def _options() -> list[click.Option]:
    def option(*names: str, callback: Any = None, **settings: Any) -> click.Option:
        return click.Option(names, hidden=True, expose_value=False, callback=callback, **settings)

    return [
        option("digdag_log", "-L", "--log", callback=_take_log),
        option("digdag_level", "-l", "--log-level", callback=_take_level),
        option("digdag_properties", "-X", multiple=True, callback=_take_pairs),
        option("digdag_config", "-c", "--config", callback=_take_config),
        option("digdag_endpoint", "-e", "--endpoint", callback=_explain_endpoint),
        option("digdag_headers", "-H", "--header", multiple=True),
        option("digdag_auth", "--basic-auth"),
        option("digdag_version_check", "--disable-version-check", is_flag=True),
        option("digdag_certificates", "--disable-cert-validation", is_flag=True),
    ]


def _take_log(_context: click.Context, _parameter: click.Parameter, path: str | None) -> None:
    if path is not None and path != "-":
        _send_log_lines_to(path=path)


def _take_level(_context: click.Context, _parameter: click.Parameter, name: str | None) -> None:
    if name is not None:
        if name.lower() not in _LEVELS:
            raise UsageError(f"expected a log level ({', '.join(_LEVELS)}), got: `{name}`")
        _send_log_lines_to(level=_LEVELS[name.lower()])


def _send_log_lines_to(**wish: Any) -> None:
    # Only then: `headrace --help` shows none and should not wait for it.
    import_module("headrace.cli.log_lines").send_log_lines_to(**wish)


def _take_pairs(context: click.Context, _parameter: click.Parameter, pairs: tuple[str, ...]) -> None:
    if pairs:
        _remember(context, import_module("headrace.cli.params_files").properties_of_pairs(pairs))


def _take_config(context: click.Context, _parameter: click.Parameter, path: str | None) -> None:
    if path is not None:
        _remember(context, import_module("headrace.cli.params_files").read_properties(path))


def _remember(context: click.Context, properties: dict[str, str]) -> None:
    known = context.find_root().meta.setdefault(_PROPERTIES, {})
    known.update(properties)


def _explain_endpoint(_context: click.Context, _parameter: click.Parameter, endpoint: str | None) -> None:
    if endpoint is not None:
        click.echo(
            "note: there is no server to send this to: commands work on the database of `--store` or of the settings",
            err=True,
        )
