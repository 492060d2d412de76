"""`headrace status`."""

from __future__ import annotations

from typing import Any

import click

from headrace.actions.status import LATE_SECONDS, Concern, Status, at_least, status
from headrace.actions.wording import span
from headrace.cli.opening import opened
from headrace.cli.options import json_option, store_option
from headrace.cli.printing import instant, print_json, print_table
from headrace.release import VERSION
from headrace.store.presence import Present

_SHOWN = 10
"""How many lines of a kind are shown to people."""


@click.command("status")
@click.option("--check", is_flag=True, help="Leave with 1 if something is wrong, for monitoring.")
@click.option(
    "--late-seconds", type=click.FloatRange(0), default=LATE_SECONDS, show_default=True,
    help="How long something may be due before it is late.",
)  # fmt: skip
@json_option
@store_option
@click.pass_context
def command(context: click.Context, check: bool, late_seconds: float, as_json: bool, url: str | None) -> None:
    """Show who is alive, what is late and why, and what was lost."""
    with opened(url) as here:
        found = status(here.store, here.clock, late_seconds)
    if as_json:
        print_json(_document(found))
    else:
        _print(found)
    if check and not found.is_healthy:
        context.exit(1)


def _print(found: Status) -> None:
    health = click.style("healthy", fg="green") if found.is_healthy else click.style("not healthy", fg="red")
    click.echo(f"headrace {VERSION} on `{found.store}` ({_bytes(found.size.bytes)}): {health}")
    if found.processes:
        click.echo()
        print_table(
            ("kind", "name", "host", "pid", "lease left", "used", "queues", "version"),
            [_row(one, found.now) for one in found.processes],
        )
    click.echo()
    click.echo(_summary(found))
    _print_concerns("wrong", [one for one in found.concerns if one.is_problem])
    _print_concerns("waiting", [one for one in found.concerns if not one.is_problem])
    _print_list(
        "given up in the last day",
        [f"{one.kind} `{one.name}`, {span(one.lost_at, found.now)} ago" for one in found.given_up],
    )
    _print_list(
        "files that could not be loaded (`headrace errors` tells more)",
        [f"{one.project}: {one.file}{f':{one.line}' if one.line else ''}" for one in found.broken_files],
    )


def _row(one: Present, now: int) -> tuple[object, ...]:
    left = "none" if one.lease_until < now else span(now, one.lease_until)
    used = f"{one.used} of {one.slots}" if one.slots else ""
    if one.stopping_at is not None:
        used = f"{one.used}, stopping"
    return one.kind, one.name, one.host, one.pid, left, used, ", ".join(one.queues), one.version


def _summary(found: Status) -> str:
    runs, backlog = found.backlog.runs, found.backlog
    ready = sum(one.number for one in backlog.ready)
    running = sum(number for _, _, number in backlog.held)
    text = f"runs: {at_least(runs['running'])} running, {at_least(runs['queued'])} queued"
    text += f" · tasks: {running:,} running, {at_least(ready)} ready"
    text += f" · triggers waiting: {at_least(backlog.triggers)}" if backlog.triggers else ""
    return text + (f" · errands waiting: {at_least(backlog.errands)}" if backlog.errands else "")


def _print_concerns(title: str, concerns: list[Concern]) -> None:
    _print_list(title, [one.sentence + (f"\n    hint: {one.hint}" if one.hint else "") for one in concerns])


def _print_list(title: str, lines: list[str]) -> None:
    if not lines:
        return
    click.echo(f"\n{title}:")
    for line in lines[:_SHOWN]:
        click.echo(f"  {line}")
    if len(lines) > _SHOWN:
        click.echo(f"  and {len(lines) - _SHOWN} more")


def _document(found: Status) -> dict[str, Any]:
    return {
        "healthy": found.is_healthy,
        "version": VERSION,
        "store": found.store,
        "store_bytes": found.size.bytes,
        "rows": found.size.rows,
        "processes": [
            {
                **one._asdict(),
                "started_at": instant(one.started_at),
                "renewed_at": instant(one.renewed_at),
                "lease_until": instant(one.lease_until),
                "stopping_at": instant(one.stopping_at),
                "alive": one.lease_until >= found.now,
            }
            for one in found.processes
        ],
        "runs": found.backlog.runs,
        "tasks_running": [{"pool": pool, "queue": queue, "number": n} for pool, queue, n in found.backlog.held],
        "tasks_ready": [{**one._asdict(), "since": instant(one.since)} for one in found.backlog.ready],
        "triggers_waiting": found.backlog.triggers,
        "errands_waiting": found.backlog.errands,
        "concerns": [{**one._asdict(), "since": instant(one.since)} for one in found.concerns],
        "given_up": [
            {**one._asdict(), "renewed_at": instant(one.renewed_at), "lost_at": instant(one.lost_at)}
            for one in found.given_up
        ],
        "files_with_errors": [
            {"project": one.project, "file": one.file, "line": one.line, "message": one.message}
            for one in found.broken_files
        ],
    }


def _bytes(number: int) -> str:
    size = float(number)
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"
