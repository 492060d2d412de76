from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from cluster import Cluster


@pytest.fixture
def make_cluster(tmp_path):
    """Makes clusters in a folder each, and ends them."""
    made = []

    def make(url=None, settings=None, without=()):
        home = tmp_path / f"home{len(made)}"
        made.append(Cluster(home, url or f"sqlite:///{home}/headrace.db", settings, without))
        return made[-1]

    yield make
    for cluster in made:
        cluster.close()
