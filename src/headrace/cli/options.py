"""Options that many commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

store_option = click.option(
    "--store", "url", metavar="URL", help="Database, as `sqlite:///PATH` or `postgresql://…`; else the `store` setting."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
limit_option = click.option(
    "--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="How many to show at most."
)
params_option = click.option(
    "-p", "--param", "params", multiple=True, metavar="KEY=VALUE",
    help="A parameter of the run. A value that is JSON (5, true, [1], \"5\") is taken as such, others are strings.",
)  # fmt: skip
session_option = click.option(
    "--logical-date", "--session", "session", metavar="TIME",
    help="What the run is for: a date, or `now`, `hourly`, `daily`, `schedule`, `last`. Without it: now.",
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
