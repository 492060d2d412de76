"""Options that many commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

import click
import msgspec

from headrace.actions.params import typed_params
from headrace.cli.digdag_options import common_params
from headrace.errors import UsageError

store_option = click.option(
    "--store", "url", metavar="URL", help="Database, as `sqlite:///PATH` or `postgresql://…`; else the `store` setting."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
limit_option = click.option(
    "--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="How many to show at most."
)
params_option = click.option(
    "-p", "--param", "params", multiple=True, metavar="KEY=VALUE",
    help="A parameter of the run. For a DAG, a value that is JSON (5, true, [1], \"5\") is taken as such. For a `.dig`"
    " workflow it is a text, `a.b=c` stands for a map, and commas may part several.",
)  # fmt: skip
conf_option = click.option(
    "-c", "--conf", metavar="JSON", help="Parameters of the run as one JSON object; `-p` overrides them."
)
session_option = click.option(
    "-l", "--logical-date", "--session", "session", metavar="TIME",
    help="What the run is for: a date, or `now`, `hourly`, `daily`, `schedule`, `last`, `none`. Without it: now.",
)  # fmt: skip
partition_option = click.option(
    "--partition-key", metavar="KEY", help="The partition that the run is for, of a workflow that has partitions.",
)  # fmt: skip
params_file_option = click.option(
    "-P", "--params-file", metavar="FILE", help="Parameters in YAML; those of `-p` win.",
)  # fmt: skip


def reaching_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """How far a choice of tasks reaches; the command gets them as keyword arguments."""
    for name, text in (
        ("--future", "Also the same tasks of later runs, by logical time."),
        ("--past", "Also the same tasks of earlier runs, by logical time."),
        ("--downstream", "Also everything that waits for them, directly or not."),
        ("--upstream", "Also everything that they wait for, directly or not."),
    ):
        command = click.option(name, is_flag=True, help=text)(command)
    return command


def given_params(context: click.Context, pairs: Iterable[str], file: str | None) -> dict[str, Any]:
    """The parameters of a command line, the weakest first: `-c` and `-X`, `-P`, `-p`."""
    # Only where there is a file: reading YAML costs more than most commands.
    from_file = import_module("headrace.cli.params_files").read_params_file(file) if file is not None else {}
    return {**common_params(context), **from_file, **typed_params(pairs)}


def parse_conf(text: str | None, option: str = "--conf") -> dict[str, Any]:
    """The JSON object that an option was given."""
    if text is None:
        return {}
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise UsageError(f"expected `{option}` to be a JSON object, got: `{text}` ({error})") from None
    if not isinstance(value, dict):
        raise UsageError(f"expected `{option}` to be a JSON object, got: `{text}`")
    return value
