from __future__ import annotations

import pytest
from agent_place import Place


@pytest.fixture
def place(prepared_url, tmp_path):
    place = Place(prepared_url, tmp_path)
    yield place
    place.store.dispose()
