"""The outcomes of faults as a table for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headrace.testing.faults.checker import KINDS
from headrace.testing.faults.fault import Outcome

HEADINGS = ("fault", "injected", "runs", "tasks", *KINDS, "offered p50/p99", "recovery p50/p99", "")


def table(outcomes: Iterable[Outcome]) -> str:
    """One line an outcome. `(2)` is what happened and is no broken promise."""
    rows = [HEADINGS, *(_cells(outcome) for outcome in outcomes)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if not column else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )


def percentile(values: Sequence[float], percent: int) -> float:
    """The smallest of the values that at least so many percent of them do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


def _cells(outcome: Outcome) -> tuple[str, ...]:
    failed = {wrong.kind for wrong in outcome.failures}
    counts = [(kind, outcome.count(kind)) for kind in KINDS]
    shown = [f"({count})" if count and kind not in failed else str(count) for kind, count in counts]
    offered = [one.offered for one in outcome.recoveries if one.offered is not None]
    times = _times(offered), _times([one.started for one in outcome.recoveries])
    verdict = "FAILED" if outcome.failures else "ok"
    return outcome.name, str(outcome.injected), str(outcome.runs), str(outcome.tasks), *shown, *times, verdict


def _times(seconds: Sequence[float]) -> str:
    return f"{percentile(seconds, 50):.2f}/{percentile(seconds, 99):.2f} s" if seconds else "-"
