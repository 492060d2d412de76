"""`pg>` on a real PostgreSQL server."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, unquote, urlsplit

import psycopg
import pytest


@pytest.fixture
def database(postgres_url):
    url = postgres_url.replace("postgresql+psycopg://", "postgresql://")
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def pg(project, database, postgres_url):
    """Runs one `pg>` task; the same task again if it is given the same start."""
    parts = urlsplit(postgres_url)
    host = parts.hostname or parse_qs(parts.query).get("host", [""])[0]
    params = {"host": unquote(host), "user": parts.username, "database": parts.path.lstrip("/").partition("?")[0]}
    if parts.port:
        params["port"] = parts.port
    project.answers.secrets = {"pg.password": unquote(parts.password or "x")}

    def run(options: str, started: int = 0, **more):
        began = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=started)
        return project.run(f"+t: {{{options}}}", params={"pg": params, **more}, first_started_at=began)

    return run


def rows(database, query):
    return database.execute(query).fetchall()


def test_a_query_file_creates_a_table_and_adds_to_it(project, pg, database):
    project.write("numbers.sql", "SELECT ${n} AS n, '100%' AS t;\n")
    assert pg("pg>: numbers.sql, create_table: numbers", n=1).outcome == "success"
    assert pg("pg>: numbers.sql, create_table: public.numbers", started=1, n=2).outcome == "success"
    assert pg("pg>: numbers.sql, insert_into: numbers", started=2, n=3).outcome == "success"
    assert rows(database, "SELECT n, t FROM numbers ORDER BY n") == [(2, "100%"), (3, "100%")]


def test_a_statement_that_is_tried_twice_happens_once(pg, database):
    database.execute("CREATE TABLE t (n int)")
    statement = "pg>: {data: 'INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)'}"
    for _ in range(3):
        assert pg(statement).outcome == "success"
    assert rows(database, "SELECT count(*) FROM t") == [(2,)]
    pg(statement, started=60)
    assert rows(database, "SELECT count(*) FROM t") == [(4,)]
    assert rows(database, "SELECT count(completed_at) FROM __digdag_status") == [(2,)]
    for _ in range(2):
        pg(f"{statement}, strict_transaction: false")
    assert rows(database, "SELECT count(*) FROM t") == [(8,)]


def test_a_statement_that_fails_leaves_nothing_and_may_be_tried_again(pg, database):
    database.execute("CREATE TABLE t (n int)")
    statement = "pg>: {data: 'INSERT INTO t VALUES (1); INSERT INTO later VALUES (1)'}"
    failed = pg(statement)
    assert (failed.outcome, failed.error.type, failed.is_retryable) == ("failed", "UndefinedTable", True)
    assert 'relation "later" does not exist' in failed.error.message
    assert rows(database, "SELECT * FROM t") == []
    database.execute("CREATE TABLE later (n int)")
    assert pg(statement).outcome == "success"
    assert rows(database, "SELECT * FROM t") == [(1,)]


def test_a_statement_that_another_process_runs_is_waited_for(pg, database):
    database.execute("CREATE TABLE t (n int)")
    pg("pg>: {data: INSERT INTO t VALUES (1)}")
    database.execute("UPDATE __digdag_status SET completed_at = NULL")
    with database.transaction():
        database.execute("SELECT * FROM __digdag_status FOR UPDATE")
        busy = pg("pg>: {data: INSERT INTO t VALUES (1)}")
    assert (busy.outcome, busy.again_after_seconds) == ("again", 1)


def test_what_was_done_is_forgotten_after_a_while(pg, database):
    database.execute("CREATE SCHEMA ops")
    options = "pg>: {data: SELECT 1}, status_table: done, status_table_schema: ops, status_table_cleanup: 1h"
    pg(options)
    database.execute("UPDATE ops.done SET completed_at = now() - interval '2 hours'")
    pg(options, started=1)
    assert rows(database, "SELECT count(*) FROM ops.done") == [(1,)]


def test_results_are_stored(pg):
    query = "pg>: {data: 'SELECT n, n * 1.5 AS f, NULL AS nothing, true AS yes FROM generate_series(1, 2) n'}"
    first = {"n": 1, "f": 1.5, "nothing": None, "yes": True}
    assert pg(f"{query}, store_last_results: first").store == {"pg": {"last_results": first}}
    every = pg(f"{query}, store_last_results: all").store["pg"]["last_results"]
    assert every == [first, {"n": 2, "f": 3, "nothing": None, "yes": True}]
    nothing = pg("pg>: {data: SELECT 1 WHERE false}, store_last_results: first")
    assert (nothing.store, nothing.reset) == ({"pg": {"last_results": {}}}, ("pg.last_results",))


def test_results_that_are_too_large_are_refused(pg):
    def store(query):
        return pg(f"pg>: {{data: '{query}'}}, store_last_results: all").error.message

    assert "more than 8192 rows" in store("SELECT * FROM generate_series(1, 8193)")
    assert "has 257 characters" in store("SELECT repeat($$x$$, 257) AS t".replace("$$", "$$$$"))
    assert "65 columns" in store("SELECT " + ", ".join(str(n) for n in range(65)))


def test_results_are_downloaded(project, pg):
    columns = 'n, $$$$a "b", c$$$$ AS t, NULL AS x, date $$$$2026-01-02$$$$ AS d'
    query = f"pg>: {{data: 'SELECT {columns} FROM generate_series(1, 2) n'}}"
    assert pg(f"{query}, download_file: out.csv").outcome == "success"
    lines = (project.root / "out.csv").read_bytes().decode().split("\r\n")
    assert lines == ["n,t,x,d", '1,"a ""b"", c",,2026-01-02', '2,"a ""b"", c",,2026-01-02', ""]
    failed = pg("pg>: {data: SELECT 1 / 0}, download_file: bad.csv")
    assert "division by zero" in failed.error.message
    assert sorted(path.name for path in project.root.iterdir()) == ["out.csv", "wf.dig"]


def test_a_query_for_its_result_cannot_write(pg, database):
    database.execute("CREATE TABLE t (n int)")
    database.execute("CREATE FUNCTION add() RETURNS int LANGUAGE sql AS 'INSERT INTO t VALUES (1) RETURNING n'")
    assert "read-only transaction" in pg("pg>: {data: SELECT add()}, store_last_results: first").error.message


def test_schema_and_names_with_quotes(pg, database):
    database.execute('CREATE SCHEMA "my schema"')
    options = "pg>: {data: SELECT 1 AS n}, schema: my schema"
    assert pg(f"{options}, create_table: 'a \"b\"; DROP'").outcome == "success"
    assert rows(database, 'SELECT n FROM "my schema"."a ""b""; DROP"') == [(1,)]


def test_a_statement_that_takes_too_long_is_stopped(pg):
    assert "statement timeout" in pg("pg>: {data: SELECT pg_sleep(30)}, socket_timeout: 1s").error.message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("create_table: a, insert_into: b", "one use for its result, got: `create_table` and `insert_into`"),
        ("download_file: a, store_last_results: all", "got: `download_file` and `store_last_results`"),
        ("store_last_results: some", "to be first, all or false, got: `some`"),
        ("download_file: ../x.csv", "to be inside the project"),
        ("password_override: nope", "the project has no secret `nope`"),
        ("host: /nowhere", "the database said no: "),
    ],
)
def test_mistakes_in_queries(pg, options, message):
    assert message in pg(f"pg>: {{data: SELECT 1}}, {options}").error.message


def test_what_cannot_be_evaluated_is_found_in_its_file(project):
    project.write("queries/daily.sql", "SELECT 1\n  -- ${session_date}\n  FROM ${tabel}\n")
    message = project.run("+t: {pg>: queries/daily.sql}", params={"table": "t"}).error.message
    assert "could not evaluate `${tabel}` of `queries/daily.sql:3`: ReferenceError" in message
    assert "did you mean `table`?" in message


def test_a_query_needs_a_database(project):
    message = project.run("+t: {pg>: {data: SELECT 1}}").error.message
    assert message == "parameter `host` or secret `pg.host` is required but not set"
