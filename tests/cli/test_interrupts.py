"""What counts as a second signal."""

from __future__ import annotations

import signal

import pytest

from headrace.cli.interrupts import Interrupts


@pytest.mark.parametrize(
    ("seconds", "leaves"),
    [([0.0], 0), ([0.0, 0.000_01], 0), ([0.0, 0.3, 0.6, 0.9], 0), ([0.0, 1.0], 1), ([0.0, 0.5, 1.5], 1)],
)
def test_a_second_signal_counts_a_second_after_the_first(seconds, leaves):
    times, left = iter(seconds), []
    interrupts = Interrupts(lambda: 7000.0 + next(times), lambda: left.append(True))
    assert not interrupts.is_told
    for _ in seconds:
        interrupts(signal.SIGTERM, None)
    assert (interrupts.is_told, len(left)) == (True, leaves)
