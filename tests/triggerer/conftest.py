"""Tasks that wait, on a store of each kind."""

from __future__ import annotations

import pytest
from waiting_tasks import Waiting


@pytest.fixture
def waiting(tmp_path):
    waiting = Waiting(tmp_path, f"sqlite:///{tmp_path}/headrace.db")
    yield waiting
    waiting.store.dispose()


@pytest.fixture
def waiting_anywhere(tmp_path, prepared_url):
    waiting = Waiting(tmp_path, prepared_url)
    yield waiting
    waiting.store.dispose()
