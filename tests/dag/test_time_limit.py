"""Blocks of code that may take only so long."""

from __future__ import annotations

import signal
import time

import pytest

from headrace.authoring.dag.exceptions import AirflowTaskTimeout
from headrace.authoring.dag.time_limit import time_limit
from headrace.compat.airflow.time_limit import timeout


def test_a_block_that_takes_too_long_is_interrupted():
    with pytest.raises(AirflowTaskTimeout, match="too long"), time_limit(0.01, "too long"):
        time.sleep(60)


def test_the_alarm_is_taken_back():
    before = signal.getsignal(signal.SIGALRM)
    with time_limit(60, "too long"):
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 0
    assert (signal.getitimer(signal.ITIMER_REAL)[0], signal.getsignal(signal.SIGALRM)) == (0, before)


def test_airflows_timeout_says_how_long_the_block_had():
    with pytest.raises(AirflowTaskTimeout, match=r"parsing: took longer than 0\.01 s"), timeout(0.01, "parsing"):
        time.sleep(60)
