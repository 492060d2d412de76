"""Options that many commands share."""

from __future__ import annotations

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
