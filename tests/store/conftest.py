"""A bench to work on: a prepared store of each kind."""

from __future__ import annotations

import pytest
from store_bench import Bench


@pytest.fixture
def bench(prepared_url):
    bench = Bench(prepared_url)
    yield bench
    bench.close()
