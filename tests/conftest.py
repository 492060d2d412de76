"""Databases for every test: one PostgreSQL server per worker, started by the first test that asks for it."""

from __future__ import annotations

import logging

import hypothesis
import pytest

from headrace.cli import log_lines
from headrace.store import Store
from headrace.testing.empty_database import new_sqlite
from headrace.testing.postgres import PostgresServer

# A busy machine is no reason for a property to fail.
hypothesis.settings.register_profile("headrace", deadline=None)
hypothesis.settings.load_profile("headrace")


@pytest.fixture(scope="session")
def postgres_server():
    """A running server, shared by the tests of one worker."""
    with PostgresServer() as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server):
    """URL of a fresh, empty PostgreSQL database."""
    url = postgres_server.new_database()
    yield url
    postgres_server.drop_database(url)


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request, tmp_path):
    """URL of a fresh, empty database of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/headrace.db"
    return request.getfixturevalue("postgres_url")


@pytest.fixture(scope="session")
def postgres_template(postgres_server):
    url = postgres_server.new_database()
    Store(url).dispose()
    return url


@pytest.fixture
def prepared_postgres_url(postgres_server, postgres_template):
    """URL of a PostgreSQL database that holds the schema and nothing else."""
    url = postgres_server.new_database(postgres_template)
    yield url
    postgres_server.drop_database(url)


@pytest.fixture(params=["sqlite", "postgres"])
def prepared_url(request, tmp_path):
    """URL of a database of each kind that holds the schema and nothing else."""
    if request.param == "sqlite":
        return new_sqlite(tmp_path / "headrace.db")
    return request.getfixturevalue("prepared_postgres_url")


@pytest.fixture(autouse=True)
def logging_as_it_was():
    """A command that is called in this process says how its process logs; the next test must not inherit that."""
    root, ours = logging.getLogger(), logging.getLogger("headrace")
    handlers, levels, wanted = root.handlers[:], (root.level, ours.level), dict(log_lines._wanted)
    yield
    root.handlers[:] = handlers
    root.setLevel(levels[0])
    ours.setLevel(levels[1])
    log_lines._wanted.clear()
    log_lines._wanted.update(wanted)
