"""How long operators wait between two looks at something outside."""

from __future__ import annotations

from typing import Any

from headrace.operators.dig.contract import Job, PollAgain

_POLLS = "polls"
_BEGAN = "began"


def growing_interval(polls: int, least: float, most: float) -> float:
    """Seconds that double from one poll to the next, between two bounds."""
    return min(least * 2.0 ** min(polls, 32), most)


def poll_again(job: Job, least: float, most: float, **kept: Any) -> PollAgain:
    """Look again after a wait that grows with each look. What else the operator wants to keep is handed on."""
    polls = int(job.state.get(_POLLS, 0))
    return PollAgain(growing_interval(polls, least, most), {**job.state, **kept_start(job), _POLLS: polls + 1, **kept})


def kept_start(job: Job) -> dict[str, Any]:
    """What `waited_seconds` needs to find in the state of the next call."""
    return {_BEGAN: job.state.get(_BEGAN, job.waited_seconds)}


def waited_seconds(job: Job) -> float:
    """How long ago the operator looked for the first time in this try, by the store's clock."""
    return job.waited_seconds - float(job.state.get(_BEGAN, job.waited_seconds))
