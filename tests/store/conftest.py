"""A prepared store of each kind, copied from a template instead of created anew."""

from __future__ import annotations

import shutil

import pytest
from store_bench import Bench

from headrace.store import Store


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory):
    path = tmp_path_factory.mktemp("template") / "headrace.db"
    Store(f"sqlite:///{path}").dispose()
    return path


@pytest.fixture(scope="session")
def postgres_template(postgres_server):
    url = postgres_server.new_database()
    Store(url).dispose()
    return url


@pytest.fixture(params=["sqlite", "postgres"])
def prepared_url(request, tmp_path):
    """URL of a database of each kind that holds the schema and nothing else."""
    if request.param == "sqlite":
        shutil.copy(request.getfixturevalue("sqlite_template"), tmp_path / "headrace.db")
        yield f"sqlite:///{tmp_path}/headrace.db"
        return
    server = request.getfixturevalue("postgres_server")
    url = server.new_database(request.getfixturevalue("postgres_template"))
    yield url
    server.drop_database(url)


@pytest.fixture
def bench(prepared_url):
    bench = Bench(prepared_url)
    yield bench
    bench.close()
