from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from toy_project import Project, inline_executor, local_executor


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.fixture
def broker() -> list[Any]:
    """Tests put functions here; the last one answers."""
    return []


@pytest.fixture
def local() -> Iterator[Any]:
    """Makes local executors and closes them after the test."""
    made: list[Any] = []

    def make(**options: Any) -> Any:
        made.append(local_executor(**options))
        return made[-1]

    yield make
    for executor in made:
        executor.close(0)


@pytest.fixture(params=["inline", "local"])
def make_executor(request: pytest.FixtureRequest, local: Any) -> Any:
    """Makes an executor of each kind, given a broker."""
    return inline_executor if request.param == "inline" else lambda broker: local(broker=broker)
