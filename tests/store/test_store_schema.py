"""The schema: created at once or by migrations it is the same, and a wrong one is refused with a clear sentence."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import time
import warnings
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, select, text, update
from sqlalchemy.exc import OperationalError

from headrace.errors import NoSchemaError, SchemaError, StoreUnreachableError
from headrace.store import Database, Store
from headrace.store.schema import VERSIONS, counter, pool, schema_for, schema_version
from headrace.store.setup import MIGRATIONS, current_version, prepare, upgrade
from headrace.store.sql import Sql

CHANGE_POOL = Sql("UPDATE pool SET slots = 1")


@pytest.fixture
def database(store_url):
    database = Database(store_url)
    yield database
    database.dispose()


@pytest.fixture
def second_database(request, store_url, tmp_path):
    if store_url.startswith("sqlite"):
        database = Database(f"sqlite:///{tmp_path}/second.db")
    else:
        database = Database(request.getfixturevalue("postgres_server").new_database())
    yield database
    database.dispose()


def test_migrations_lead_to_the_schema_that_the_code_describes(database):
    assert upgrade(database) == (None, VERSIONS[-1])
    with database.read() as tx:
        options = {"version_table": schema_version.name, "include_name": _is_comparable(database)}
        context = MigrationContext.configure(tx.connection, opts=options)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*expression-based index")
            changes = compare_metadata(context, schema_for(tx.connection.dialect.name))
            assert [one for one in changes if not any(name in str(one) for name in _WITH_EXPRESSIONS)] == []


def _is_comparable(database: Database):
    # These cannot be reflected on SQLite; the comparison of descriptions below sees them.
    skipped = _WITH_EXPRESSIONS if database.dialect == "sqlite" else set()
    return lambda name, kind, parents: name not in skipped


_WITH_EXPRESSIONS = {"ix_task_claimable", "ix_run_active"}


def test_a_fresh_schema_is_exactly_what_migrations_lead_to(database, second_database):
    prepare(database)
    upgrade(second_database)
    assert description(database) == description(second_database)
    assert content(database) == content(second_database)


def description(database: Database) -> dict:
    """Everything that the database knows about its tables, in no particular order."""
    with database.read() as tx:
        if database.dialect == "sqlite":
            rows = tx.execute(text("SELECT type, name, sql FROM sqlite_master"))
            return {(row.type, row.name): sorted(_parts(row.sql)) for row in rows}
        return {name: sorted(map(str, tx.execute(text(query)))) for name, query in _CATALOG.items()}


def _parts(sql: str | None) -> list[str]:
    return [line.strip().rstrip(",") for line in (sql or "").splitlines() if line.strip()]


_CATALOG = {
    "columns": """SELECT table_name, column_name, data_type, is_nullable, column_default, character_maximum_length
        FROM information_schema.columns WHERE table_schema = 'public'""",
    "indexes": "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'",
    "constraints": """SELECT conrelid::regclass, conname, contype, pg_get_constraintdef(oid)
        FROM pg_constraint WHERE connamespace = 'public'::regnamespace""",
    "sequences": "SELECT sequencename, data_type, start_value, increment_by FROM pg_sequences",
    "comments": """SELECT c.relname, d.objsubid, d.description FROM pg_description d JOIN pg_class c ON c.oid = d.objoid
        WHERE c.relnamespace = 'public'::regnamespace""",
}


def content(database: Database) -> list:
    with database.read() as tx:
        return [sorted(map(tuple, tx.execute(select(table)))) for table in (counter, pool, schema_version)]


def test_the_code_knows_every_migration_and_no_other():
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    revisions = [script.revision for script in ScriptDirectory.from_config(config).walk_revisions()]
    assert tuple(reversed(revisions)) == VERSIONS


def test_upgrading_what_is_new_enough_changes_nothing(database):
    prepare(database)
    before = description(database)
    assert upgrade(database) == (VERSIONS[-1], VERSIONS[-1])
    assert description(database) == before


def test_a_failed_upgrade_leaves_nothing_behind(database, monkeypatch):
    monkeypatch.setattr("headrace.store.setup.VERSIONS", ("0001", "no-such-version"))
    with pytest.raises(Exception, match="no-such-version"):
        upgrade(database)
    with database.read() as tx:
        assert inspect(tx.connection).get_table_names() == []


def test_an_upgraded_store_can_be_used(database):
    upgrade(database)
    store = Store(database.url)
    with store.read() as tx:
        assert tx.run(Sql("SELECT name, slots FROM pool")) == [("default_pool", 128)]
    store.dispose()


def test_the_default_pool_has_the_size_that_was_asked_for_when_the_schema_is_created(store_url):
    store = Store(store_url, default_pool_slots=7)
    with store.read() as tx:
        assert tx.run(Sql("SELECT name, slots FROM pool")) == [("default_pool", 7)]
    store.dispose()
    Store(store_url, default_pool_slots=9).dispose()


@pytest.mark.parametrize(
    ("version", "hint"), [("0000", "headrace db upgrade"), ("9999", "a newer Headrace has upgraded it")]
)
def test_a_schema_of_another_version_is_refused(store_url, version, hint, monkeypatch):
    Store(store_url).dispose()
    database = Database(store_url)
    with database.begin() as tx:
        tx.execute(update(schema_version).values(version_num=version))
    monkeypatch.setattr("headrace.store.setup.VERSIONS", ("0000", "0001"))
    monkeypatch.setattr("headrace.store.schema_difference.VERSIONS", ("0000", "0001"))
    with pytest.raises(SchemaError, match=f"is at schema {version}, this version needs 0001") as caught:
        Store(store_url)
    assert hint in caught.value.hint
    if version == "9999":
        with pytest.raises(SchemaError, match="is at schema 9999"):
            upgrade(database)
    assert current_version(database) == version
    database.dispose()


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ("ALTER TABLE run RENAME COLUMN note TO remark", "its table `run` has no column `note`"),
        ("DROP TABLE memo", "it has no table `memo`"),
        ("ALTER TABLE pool ADD COLUMN colour TEXT NOT NULL DEFAULT 'red'", None),
        ("DROP INDEX uq_project_name", "its table `project` has no index `uq_project_name`"),
    ],
)
def test_tables_that_were_changed_without_a_new_version_are_told_when_a_statement_fails(store_url, change, difference):
    store = Store(store_url)
    store.transact(lambda tx: tx.execute(text(change)))
    statements = (
        "SELECT note FROM run",
        "SELECT name FROM memo",
        "INSERT INTO project (name, root, created_at) VALUES ('p', '', 0)"
        " ON CONFLICT (name) WHERE deleted_at IS NULL DO NOTHING",
    )
    told = set()
    for statement in statements:
        try:
            with store.begin() as tx:
                tx.change(Sql(statement))
        except SchemaError as error:
            told.add(error.message.rpartition("between two releases: ")[2])
    assert told == ({difference} if difference else set())
    with store.read() as tx:
        assert (store.database.schema_error_of(tx.connection) is None) == (difference is None)
    store.dispose()


def test_an_upgrade_under_a_process_that_runs_is_told_as_one(store_url):
    store = Store(store_url)
    with store.begin() as tx:
        tx.execute(text("ALTER TABLE run RENAME COLUMN note TO remark"))
        tx.execute(update(schema_version).values(version_num="9999"))
    with pytest.raises(SchemaError, match="is at schema 9999, this version needs 0001"), store.read() as tx:
        tx.run(Sql("SELECT note FROM run"))
    store.dispose()


def test_a_mistake_of_ours_is_not_told_as_a_wrong_database(database):
    prepare(database)
    with pytest.raises(Exception, match="nonsense") as caught, database.begin() as tx:
        tx.run(Sql("SELECT nonsense FROM run"))
    assert not isinstance(caught.value, SchemaError)


def test_two_processes_may_create_the_schema_at_the_same_moment(store_url):
    one, two = Store(store_url), Store(store_url)
    with one.read() as tx:
        assert tx.run(Sql("SELECT count(*) FROM counter")) == [(1,)]
    one.dispose()
    two.dispose()


def test_tables_of_another_program_are_left_alone(store_url):
    stranger = Database(store_url)
    stranger.transact(lambda tx: tx.execute(text("CREATE TABLE project (name TEXT)")))
    with pytest.raises(SchemaError, match="holds tables of another program: project"):
        Store(store_url)
    with stranger.read() as tx:
        assert inspect(tx.connection).get_table_names() == ["project"]
    stranger.dispose()


def test_an_upgrade_does_not_take_tables_of_another_program_for_ours(database):
    database.transact(lambda tx: tx.execute(text("CREATE TABLE project (name TEXT)")))
    with pytest.raises(SchemaError, match="holds tables of another program: project") as caught:
        upgrade(database)
    assert caught.value.hint == "name an empty database with `--store` or the `store` setting"


def test_a_version_table_of_another_program_is_not_taken_for_ours(database):
    database.transact(lambda tx: tx.execute(text("CREATE TABLE schema_version (installed_rank INTEGER)")))
    assert current_version(database) is None
    with pytest.raises(SchemaError, match="holds tables of another program: schema_version"):
        prepare(database)


def test_many_tables_of_another_program_are_not_all_told(database):
    for number in range(8):
        database.transact(lambda tx, number=number: tx.execute(text(f"CREATE TABLE t{number} (name TEXT)")))
    with pytest.raises(SchemaError, match="t0, t1, t2, t3, t4 and 3 more"):
        prepare(database)


def test_what_an_extension_brings_along_is_no_table_of_another_program(postgres_url):
    database = Database(postgres_url)
    with database.begin() as tx:
        # As PostGIS does with `spatial_ref_sys`; the server of the tests has only this extension for certain.
        tx.execute(text("CREATE TABLE spatial_ref_sys (srid INTEGER)"))
        tx.execute(text("ALTER EXTENSION plpgsql ADD TABLE spatial_ref_sys"))
    database.dispose()
    Store(postgres_url).dispose()


def test_a_store_that_must_exist_is_not_made(database):
    with pytest.raises(NoSchemaError, match="there is no Headrace database at"):
        Store(database.url, must_exist=True)
    prepare(database)
    Store(database.url, must_exist=True).dispose()


def test_a_restored_file_gets_its_write_ahead_log_back(tmp_path):
    Store(f"sqlite:///{tmp_path}/headrace.db").dispose()
    for statement, name in (("VACUUM INTO 'copy.db'", "headrace.db"), ("PRAGMA journal_mode", "copy.db")):
        with contextlib.chdir(tmp_path), contextlib.closing(sqlite3.connect(name)) as connection:
            mode = connection.execute(statement).fetchone()
    assert mode == ("delete",)
    store = Store(f"sqlite:///{tmp_path}/copy.db", must_exist=True)
    with store.read() as tx:
        assert tx.run(Sql("PRAGMA journal_mode")) == [("wal",)]
    store.dispose()


@pytest.mark.parametrize("create", [lambda url: prepare(Database(url)), lambda url: upgrade(Database(url))])
@pytest.mark.parametrize("url", ["sqlite:///{}", "sqlite:///file:{}?uri=true"])
def test_a_new_file_is_readable_for_its_owner_alone(tmp_path, url, create):
    path = tmp_path / "home" / "headrace.db"
    create(url.format(path))
    store = Store(url.format(path))
    store.transact(lambda tx: tx.change(Sql("UPDATE pool SET slots = 1")))
    modes = {file.name: stat.filemode(file.stat().st_mode) for file in path.parent.iterdir()}
    assert modes == {f"headrace.db{end}": "-rw-------" for end in ("", "-wal", "-shm")}
    store.dispose()


def test_the_mode_of_a_file_that_exists_is_its_owners_business(tmp_path):
    path = tmp_path / "headrace.db"
    path.touch()
    path.chmod(0o640)
    for _ in range(2):
        Store(f"sqlite:///{path}").dispose()
        assert stat.filemode(path.stat().st_mode) == "-rw-r-----"


def test_a_link_to_a_file_that_is_not_there_yet_leads_to_a_new_one(tmp_path):
    (tmp_path / "headrace.db").symlink_to(tmp_path / "real.db")
    Store(f"sqlite:///{tmp_path}/headrace.db").dispose()
    assert stat.filemode((tmp_path / "real.db").stat().st_mode) == "-rw-------"


def test_a_file_that_may_only_be_read_is_not_made(tmp_path):
    with pytest.raises(StoreUnreachableError, match="unable to open database file"):
        Store(f"sqlite:///file:{tmp_path}/none.db?mode=ro&uri=true")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("url", ["sqlite:///{}", "sqlite:///file:{}?uri=true"])
def test_a_file_that_was_deleted_is_told_and_not_made_anew(tmp_path, url):
    path = tmp_path / "head race.db"
    store = Store(url.format(path if "uri" not in url else quote(str(path))))
    path.unlink()
    gone = pytest.raises(NoSchemaError, match=r"there is no Headrace database any more at .*deleted")
    for _ in range(2):
        with gone, store.begin() as tx:
            tx.change(CHANGE_POOL)
    with gone, store.read() as tx:
        tx.run(CHANGE_POOL)
    with gone:
        store.transact(lambda tx: tx.change(CHANGE_POOL))
    # As if it were deleted after the look and before the connection is opened.
    with pytest.raises(OperationalError, match="unable to open database file"):
        store.database.engine.connect()
    assert not path.exists()
    store.dispose()


@pytest.mark.parametrize("replace", [Path.touch, lambda path: Store(f"sqlite:///{path}").dispose()])
@pytest.mark.parametrize("is_open", [True, False])
def test_another_file_in_the_place_of_the_database_is_told(tmp_path, replace, is_open):
    store = Store(f"sqlite:///{tmp_path}/headrace.db")
    if not is_open:
        store.close()
    replace(tmp_path / "other.db")
    (tmp_path / "other.db").replace(tmp_path / "headrace.db")
    with pytest.raises(NoSchemaError, match=r"any more at .*another file is in its place"), store.begin() as tx:
        tx.change(CHANGE_POOL)
    store.dispose()


def test_tables_that_are_gone_are_told(prepared_url):
    store = Store(prepared_url)
    for table in ("schema_version", "pool"):
        store.transact(lambda tx, table=table: tx.execute(text(f"DROP TABLE {table}")))
    with pytest.raises(NoSchemaError, match=r"any more at .*its tables are gone") as caught, store.begin() as tx:
        tx.change(CHANGE_POOL)
    assert "restore a backup" in caught.value.hint
    store.dispose()


def test_a_file_that_is_no_database_is_named(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("this is not a database at all, " * 100)
    with pytest.raises(StoreUnreachableError, match=r"notes\.txt`: the file is no SQLite database") as caught:
        Store(f"sqlite:///{path}")
    assert "name another file" in caught.value.hint


def test_a_folder_in_the_place_of_a_database_is_named(tmp_path):
    with pytest.raises(StoreUnreachableError, match="it is a folder") as caught:
        Store(f"sqlite:///{tmp_path}")
    assert f"such as `{tmp_path}/headrace.db`" in caught.value.hint


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreUnreachableError, match=r"could not create the folder of the database .*file/headrace\.db"):
        Store(f"sqlite:///{tmp_path}/file/headrace.db")


def test_a_database_file_that_cannot_be_written_is_named(tmp_path):
    path = tmp_path / "headrace.db"
    Store(f"sqlite:///{path}").dispose()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    # A read-only file would stop nobody who runs the tests as root; SQLite's own switch does.
    with pytest.raises(StoreUnreachableError, match=r"cannot write to .*headrace\.db"):
        store = Store(f"sqlite:///file:{path}?mode=ro&uri=true")
        with store.begin() as tx:
            tx.change(Sql("DELETE FROM pool"))


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only for root")
def test_a_read_only_folder_is_named(tmp_path):
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)
    with pytest.raises(StoreUnreachableError, match="locked"):
        Store(f"sqlite:///{folder}/headrace.db")


def test_an_unreachable_server_is_named_without_its_password():
    with pytest.raises(StoreUnreachableError, match="could not reach the database") as caught:
        Store("postgresql://someone:secret@127.0.0.1:9/headrace")
    assert "someone:***@127.0.0.1:9/headrace" in str(caught.value)
    assert "secret" not in str(caught.value)
    assert "check that it runs" in caught.value.hint


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://app@db:5432/flows", "postgresql://app@db:5432/flows"),
        ("postgres://app:hunter22@db/flows", "postgres://app:***@db/flows"),
        ("postgresql+psycopg://app:hunter22@db/flows", "postgresql+psycopg://app:***@db/flows"),
        ("postgresql:///flows?host=/run/postgresql", "postgresql:///flows?host=/run/postgresql"),
        ("postgresql://db/flows?user=app&password=hunter22", "postgresql://db/flows?user=app"),
        ("sqlite:////srv/headrace.db", "sqlite:////srv/headrace.db"),
        ("/srv/headrace.db", "sqlite:////srv/headrace.db"),
    ],
)
def test_a_database_is_shown_as_it_was_configured(url, shown):
    assert Database(url).display_name == shown


def test_a_url_that_cannot_be_read_is_named_without_its_password():
    with pytest.raises(
        StoreUnreachableError, match=r"use `postgresql://app@db:port/flows` as a store: .*`port`"
    ) as caught:
        Database("postgresql://app:hunter22@db:port/flows")
    assert "hunter22" not in str(caught.value)


def test_a_password_that_is_taken_for_a_port_is_not_told():
    with pytest.raises(StoreUnreachableError, match="expected the port to be a number") as caught:
        Database("postgresql://app:hunt@er:22@db/flows")
    assert caught.value.message == "cannot use `postgresql://app@db/flows` as a store: expected the port to be a number"
    assert "write `@` as `%40`" in caught.value.hint


def test_a_database_or_a_user_that_does_not_exist_is_named_with_what_makes_it(postgres_server):
    url = postgres_server.url.rpartition("/")[0] + "/nowhere"
    with pytest.raises(StoreUnreachableError, match="nowhere") as caught:
        Store(url)
    assert caught.value.hint.startswith("`createdb nowhere`")
    with pytest.raises(StoreUnreachableError, match="nobody") as caught:
        Store(postgres_server.url.replace("postgres@", "nobody@"))
    assert caught.value.hint.startswith("`createuser nobody`")


@pytest.fixture
def user_with_password(postgres_server):
    """URL of a database whose user has to give a password."""
    with psycopg.connect(postgres_server.url, autocommit=True) as admin:
        admin.execute("CREATE ROLE careful LOGIN PASSWORD 'hunter22'")
        ((rules,),) = admin.execute("SHOW hba_file").fetchall()
        before = Path(rules).read_text()
        rule(postgres_server.url, rules, f"host all careful all scram-sha-256\n{before}")
        yield postgres_server.url.replace("postgres@", "careful@")
        rule(postgres_server.url, rules, before)
        admin.execute("DROP ROLE careful")


def rule(url: str, file: str, rules: str) -> None:
    """Have the server know who may connect how. It is told by a signal, and connections show when that has arrived."""
    before = read_at(url)
    Path(file).write_text(rules)
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute("SELECT pg_reload_conf()")
    deadline = time.monotonic() + 30.0
    while read_at(url) == before:
        assert time.monotonic() < deadline, "the server has not read its rules"


def read_at(url: str):
    with psycopg.connect(url) as connection:
        return connection.execute("SELECT pg_conf_load_time()").fetchone()


def test_a_password_that_is_missing_or_wrong_is_what_the_hint_is_about(user_with_password, monkeypatch):
    monkeypatch.delenv("PGPASSWORD", raising=False)
    monkeypatch.setenv("PGPASSFILE", "/dev/null")
    with pytest.raises(StoreUnreachableError, match="no password") as caught:
        Store(user_with_password)
    assert "`~/.pgpass`" in caught.value.hint and "`PGPASSWORD`" in caught.value.hint
    with pytest.raises(StoreUnreachableError, match="password authentication failed") as caught:
        Store(user_with_password.replace("careful@", "careful:wrong@"))
    assert caught.value.hint.startswith("check the user")
    assert "wrong@" not in str(caught.value)


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg", "postgresql+psycopg2"])
def test_every_usual_name_of_a_server_means_the_driver_that_is_installed(postgres_url, scheme):
    store = Store(postgres_url.replace("postgresql://", f"{scheme}://"))
    with store.read() as tx:
        assert tx.run(Sql("SELECT name FROM pool")) == [("default_pool",)]
    assert store.database.display_name.startswith(f"{scheme}://"), "it is shown as it was given"
    store.dispose()


@pytest.mark.parametrize("url", ["mysql://localhost/x", "oracle+nothing://x", "sqlite+strange:///x"])
def test_another_kind_of_database_is_refused(url):
    with pytest.raises(StoreUnreachableError, match=r"cannot use .* as a store"):
        Store(url)


def test_a_connection_that_broke_is_opened_again(prepared_url, postgres_server):
    if prepared_url.startswith("sqlite"):
        pytest.skip("SQLite has no connection that could break")
    store = Store(prepared_url)
    cut_connections(postgres_server, prepared_url)
    with store.begin() as tx:
        assert tx.run(Sql("SELECT 1")) == [(1,)]
    cut_connections(postgres_server, prepared_url)
    with pytest.raises(StoreUnreachableError), store.read() as tx:
        tx.run(Sql("SELECT 1"))
    with store.read() as tx:
        assert tx.run(Sql("SELECT 1")) == [(1,)]
    store.dispose()


def test_a_connection_that_breaks_between_reads_is_what_is_told(prepared_url, postgres_server):
    if prepared_url.startswith("sqlite"):
        pytest.skip("SQLite has no connection that could break")
    store = Store(prepared_url)
    with pytest.raises(StoreUnreachableError), store.read() as tx:
        tx.execute(text("SELECT 1"))
        cut_connections(postgres_server, prepared_url)
        tx.execute(text("SELECT 1"))
    with store.read() as tx:
        assert tx.execute(text("SELECT 1")).scalar() == 1
    store.dispose()


def test_a_connection_that_breaks_in_a_transaction_loses_it_and_is_opened_again(prepared_url, postgres_server):
    if prepared_url.startswith("sqlite"):
        pytest.skip("SQLite has no connection that could break")
    store = Store(prepared_url)
    with pytest.raises(StoreUnreachableError), store.begin() as tx:
        tx.change(Sql("DELETE FROM pool"))
        cut_connections(postgres_server, prepared_url)
    with store.begin() as tx:
        assert tx.run(Sql("SELECT name FROM pool")) == [("default_pool",)]
    store.dispose()


def cut_connections(server, url: str) -> None:
    cut = Sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name")
    database = Database(server.url)
    with database.read() as tx:
        tx.run(cut, {"name": url.rpartition("/")[2]})
    database.dispose()
