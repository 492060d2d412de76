"""Tables for people and JSON for programs, on stdout."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from typing import Any

import click

from headrace.cli.cells import cut, padded, width
from headrace.clock import from_micros, iso

_NARROWEST = 8


def print_json(document: Any) -> None:
    """One JSON document on one line."""
    click.echo(json.dumps(document, ensure_ascii=False))


def print_table(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Columns that fit the terminal; the widest ones are cut first. Elsewhere 80 columns, nothing is cut."""
    texts = [["" if cell is None else str(cell).replace("\n", " ") for cell in row] for row in rows]
    widths = [max(map(width, column)) for column in zip(headers, *texts, strict=True)]
    if sys.stdout.isatty():
        _narrow(widths, shutil.get_terminal_size((80, 24)).columns)
    for row in [[header.upper() for header in headers], *texts]:
        click.echo("  ".join(map(_fit, row, widths)).rstrip())


def instant(micros: int | None) -> str | None:
    """An instant for JSON."""
    return None if micros is None else iso(from_micros(micros))


def seconds(start: int | None, end: int | None) -> float | None:
    """A duration for JSON."""
    return None if start is None or end is None else round((end - start) / 1e6, 6)


def _narrow(widths: list[int], total: int) -> None:
    while sum(widths) + 2 * (len(widths) - 1) > total and max(widths) > _NARROWEST:
        widths[widths.index(max(widths))] -= 1


def _fit(text: str, columns: int) -> str:
    return padded(text if width(text) <= columns else cut(text, columns - 1) + "…", columns)
