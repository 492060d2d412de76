"""Answers about assets and other runs, as `handoff.Channel` promises them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from headrace.clock import from_micros, iso, to_micros
from headrace.errors import UsageError
from headrace.store import AssetEventRow, Neighbour, Transaction, list_asset_events

_MOST_EVENTS = 10_000


def asset_events_answer(
    tx: Transaction,
    asset: str | None,
    alias: str | None,
    after: str | None,
    before: str | None,
    ascending: bool,
    limit: int | None,
) -> msgspec.Raw:
    """Events of an asset or alias. With a limit, the oldest ones or, descending, the newest ones."""
    span = {name: _micros(text) for name, text in (("after", after), ("before", before)) if text is not None}
    wanted = _MOST_EVENTS if ascending or limit is None else limit
    rows = list_asset_events(tx, asset=asset or "", alias=alias or "", limit=wanted, **span)
    if ascending:
        rows.reverse()
    return msgspec.Raw(msgspec.json.encode([described_event(row) for row in rows[:limit]]))


def described_event(row: AssetEventRow) -> dict[str, Any]:
    return {
        **row._asdict(),
        "extra": msgspec.Raw(row.extra.encode()),
        "aliases": msgspec.Raw(row.aliases.encode()),
        "timestamp": _iso(row.at),
    }


def described_run(found: Neighbour) -> dict[str, Any]:
    return {
        "run_key": found.run_key,
        "run_type": found.run_type,
        "state": found.state,
        "params": msgspec.json.decode(found.params),
        "logical_time": _iso(found.logical_at),
        "run_after": _iso(found.run_after),
        "interval_start": _iso(found.interval_start),
        "interval_end": _iso(found.interval_end),
        "started_at": _iso(found.started_at),
        "ended_at": _iso(found.ended_at),
        "partition_key": found.partition_key,
        "partition_time": _iso(found.partition_at),
    }


def _iso(micros: int | None) -> str | None:
    return None if micros is None else iso(from_micros(micros))


def _micros(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"expected an ISO 8601 instant, got: `{text}`") from None
    return to_micros(moment if moment.tzinfo is not None else moment.astimezone())
