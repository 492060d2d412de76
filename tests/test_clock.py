"""How far this machine's clock is off, told from readings of another one that take their time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from headrace.clock import Reading, best_offset

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
MILLISECONDS = st.integers(0, 10_000).map(lambda micros: timedelta(microseconds=micros))


def reading(behind, there, back):
    """The other clock was looked at when `there` had passed, and its answer took `back`."""
    return Reading(NOON, NOON + there + behind, there + back)


@given(
    behind=st.timedeltas(timedelta(days=-1), timedelta(days=1)),
    ways=st.lists(st.tuples(MILLISECONDS, MILLISECONDS), min_size=1, max_size=5),
)
def test_the_quickest_reading_decides_and_errs_by_half_of_what_it_took(behind, ways):
    error = best_offset(reading(behind, there, back) for there, back in ways) - behind
    assert abs(error) <= min(there + back for there, back in ways) / 2 + timedelta(microseconds=1)


def test_a_reading_that_was_held_up_does_not_count():
    held_up = reading(timedelta(0), timedelta(0), timedelta(milliseconds=12))
    quick = reading(timedelta(0), timedelta(microseconds=100), timedelta(microseconds=100))
    assert held_up.offset == timedelta(milliseconds=-6)
    assert best_offset([held_up, quick]) == best_offset([quick, held_up]) == timedelta(0)
