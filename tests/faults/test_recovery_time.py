"""From a death to the next try, on hosts of which nobody can see that they are gone."""

from __future__ import annotations

import pytest

from headrace.testing.faults.recovery import CASES, measure
from headrace.testing.faults.table import percentile


@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
def test_a_task_is_tried_again_in_time(case):
    how, settings, goal = CASES[case]
    assert percentile(measure(how, settings, kills=5), 99) < goal
