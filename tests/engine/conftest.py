"""An engine per test, on SQLite."""

from __future__ import annotations

import pytest

from headrace.testing.engine import Engine


@pytest.fixture
def engine(tmp_path):
    engine = Engine(tmp_path)
    yield engine
    engine.close()
