"""Connections and transactions: SQLite in WAL mode or PostgreSQL, one connection per thread.

The caller owns the transaction (`with store.begin() as tx:`). Nothing outside this room sees a driver or an exception
of one.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import quote, unquote

from sqlalchemy import URL, Connection, CursorResult, Engine, Executable, create_engine, event, make_url
from sqlalchemy import exc as sa_errors
from sqlalchemy.pool import NullPool

from headrace.definition import storable
from headrace.errors import ConflictError, SchemaError, StoreError, StoreLockedError, StoreUnreachableError
from headrace.metrics.catalogue import CONNECTIONS, DATABASE_ERRORS
from headrace.store.news import NOTHING, News
from headrace.store.outage import Outage
from headrace.store.postgres_line import SILENT_SECONDS, PostgresLine
from headrace.store.schema_difference import (
    gone_error,
    has_version,
    is_table_missing,
    may_come_from_other_tables,
    schema_error_of,
)
from headrace.store.sql import CHECK_FAILED, Sql
from headrace.store.sqlite_line import SqliteLine
from headrace.store.unreachable import file_error, port_error, server_error
from headrace.user_environment import without_password

T = TypeVar("T")

BUSY_SECONDS = 30
FROZEN_SECONDS = 10
"""PostgreSQL ends a transaction in which nothing was asked for so long: a process that froze in the middle of one must
not keep its locks, and thereby everybody else, for ever."""
IMPATIENT_SECONDS = 10.0
"""For how long people and their monitoring are left without an answer while somebody else keeps a lock."""
_LOCK_CODE = "55P03"
"""PostgreSQL: a lock was not to be had in time."""
_CONFLICT_CODES = {"40001", "40P01", "55P03", "23505", "23503"}
"""PostgreSQL: serialization failure, deadlock, lock not available, a unique row that somebody else inserted first, a
row that somebody else deleted before it could be referred to."""
_UNREACHABLE_CODES = ("08", "57", "3D", "28", "25P03", "53", "58")
"""PostgreSQL: how codes begin that mean a connection was refused or ended, the fifth because of FROZEN_SECONDS, or that
the server lacks something: connections, memory, a disk that works."""
_FULL = ("database or disk is full", "53100")
"""SQLite's words and PostgreSQL's code."""
_BROKEN_SQLITE = ("unable to open database", "not a database", "disk I/O error")
_CONNECTING = {"connect_timeout": 10, "tcp_user_timeout": 10_000}
"""Seconds and milliseconds after which a server that does not even confirm what it was sent is taken to be away."""
_KEEPALIVES = {"keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3}
"""In seconds: the same while an answer is waited for."""

_ERROR_KINDS = (
    (ConflictError, "conflict"),
    (StoreUnreachableError, "unreachable"),
    (SchemaError, "schema"),
    (StoreError, "locked"),
)

WAIT_FOR_LOCKS = Sql("SELECT [[sqlite: :limit]][[postgres: set_config('lock_timeout', :limit, false)]]")
"""Locks of tables included, which reading takes, too. SQLite's readers wait for nobody."""
BEGIN = Sql("[[sqlite: BEGIN IMMEDIATE]][[postgres: BEGIN]]")
"""SQLite has one writer: taking the lock first means that nothing read in the transaction can be stale."""
COMMIT = Sql("COMMIT")
ROLLBACK = Sql("ROLLBACK")


class Reply(Protocol):
    """The answer to a statement, which may still be on its way."""

    def rows(self) -> list[tuple[Any, ...]]: ...

    def changed(self) -> int: ...


class Line(Protocol):
    """Takes hot statements in order. It may keep them back until somebody wants an answer."""

    has_answered: bool

    def ask(self, statement: Sql, parameters: Mapping[str, Any]) -> Reply: ...

    def ask_each(self, statement: Sql, rows: Sequence[Any]) -> Reply: ...

    def flush(self) -> None: ...

    def forget(self) -> None: ...


class Transaction:
    """Statements on one connection.

    Hot SQL: `run` for rows, `change` for how many rows it changed, `write` for what need not be known now, `ask` for
    what will be wanted soon. The latter two save round trips: on PostgreSQL they travel with the next `run`, `change`
    or commit, which then also raises what is wrong with them. `execute` takes SQLAlchemy Core.
    """

    def __init__(self, database: Database, connection: Connection, line: Line) -> None:
        self._database = database
        self._connection = connection
        self._line = line
        self.dialect = database.dialect
        self.news = NOTHING
        """What others have to look at after the commit."""
        self.tasks_left: int | None = 0
        """How many tasks are left for agents; None: nobody has counted."""
        self.after_commit: list[Callable[[], None]] = []

    @property
    def database(self) -> Database:
        return self._database

    @property
    def connection(self) -> Connection:
        """For what only SQLAlchemy can do, such as creating tables."""
        self._line.flush()
        return self._connection

    @property
    def has_begun(self) -> bool:
        """Whether the server has reacted to anything."""
        return self._line.has_answered

    def run(self, statement: Sql, parameters: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """Run a hot statement and return its rows."""
        return self.ask(statement, parameters).rows()

    def change(self, statement: Sql, parameters: Mapping[str, Any] | None = None) -> int:
        """Run a hot statement and return how many rows it changed."""
        return self.ask(statement, parameters).changed()

    def ask(self, statement: Sql, parameters: Mapping[str, Any] | None = None) -> Reply:
        """Run a hot statement whose answer will be wanted soon, but not before others were asked."""
        self._database.statements += 1
        return self._line.ask(statement, parameters or {})

    def write(self, statement: Sql, parameters: Mapping[str, Any] | None = None) -> None:
        """Run a hot statement whose answer nobody needs."""
        self.ask(statement, parameters)

    def write_each(self, statement: Sql, rows: Sequence[Any]) -> None:
        """Run a statement that reads `ROWS(:rows)`, with structs or named tuples of plain values, or mappings."""
        self.ask_each(statement, rows)

    def ask_each(self, statement: Sql, rows: Sequence[Any]) -> Reply:
        """As `write_each`, for a statement whose answer will be wanted."""
        self._database.statements += 1
        return self._line.ask_each(statement, rows)

    def tell(self, news: News = News.ALL, tasks: int | None = None) -> None:
        """Have others look at something new when this is committed. Of work it may be known how many tasks it is."""
        self.news |= news
        if news & News.WORK:
            self.tasks_left = None if tasks is None or self.tasks_left is None else self.tasks_left + tasks

    def execute(self, statement: Executable, parameters: Any = None) -> CursorResult[Any]:
        """Run a SQLAlchemy Core statement."""
        self._database.statements += 1
        return self.connection.execute(statement, parameters)

    def shared(self, factory: Callable[[], T]) -> T:
        """What all transactions of this database share in this process, such as a cache; made on first use."""
        return self._database.shared(factory)

    def begin(self) -> None:
        self._line.forget()
        self._line.ask(BEGIN, {})

    def flush(self) -> None:
        """Send what was kept back."""
        self._line.flush()

    def commit(self) -> None:
        self._database.commits += 1
        self._line.ask(COMMIT, {}).changed()

    def rollback(self) -> None:
        self._line.forget()
        self._line.ask(ROLLBACK, {}).changed()

    def close(self) -> None:
        self._line.flush()
        if self._connection.in_transaction():
            self._connection.commit()


class Database:
    """One database by URL, with counters of what was asked of it."""

    def __init__(self, url: str, *, lock_seconds: float = 0.0) -> None:
        """`lock_seconds` is how long PostgreSQL may have it wait for a lock; 0: for ever."""
        given = _as_url(url)
        self._lock_seconds = lock_seconds
        self.url = _supported(_with_driver(given))
        self.display_name = _shown(given)
        """The URL as it was given, without a password."""
        self.dialect = "sqlite" if self.url.startswith("sqlite") else "postgres"
        self.statements = 0
        self.commits = 0
        self.sessions: set[int] = set()
        """PostgreSQL: the server's numbers of this process's connections."""
        self._local = threading.local()
        self._outages = 0
        """How often a connection broke: one that is older than the last time is not used again."""
        self._lock = threading.Lock()
        self._shared: dict[Any, Any] = {}
        self._engine = _engine(self.url, self.display_name)
        self._path = None if self.file is None else os.path.abspath(self.file)
        self._opened: os.stat_result | None = None
        """The file as it was when this process opened it first."""
        if self._path is not None:
            event.listen(self._engine, "do_connect", self._create_once)
        self.outage = Outage(self.display_name)

    def shared(self, factory: Callable[[], T]) -> T:
        """One object per factory and database."""
        with self._lock:
            if factory not in self._shared:
                self._shared[factory] = factory()
            shared: T = self._shared[factory]
            return shared

    @property
    def engine(self) -> Engine:
        return self._engine

    @property
    def file(self) -> Path | None:
        """Where SQLite keeps it; None: on a server or in memory."""
        url = self._engine.url
        name = url.database or ":memory:"
        if name.startswith("file:"):
            name = unquote(name.removeprefix("file:").removeprefix("//"))
        is_file = self.dialect == "sqlite" and name != ":memory:" and url.query.get("mode") != "memory"
        return Path(name) if is_file else None

    @contextmanager
    def begin(self) -> Iterator[Transaction]:
        """A transaction that may write. It is committed at the end of the block unless the block raises."""
        with self._translated():
            tx = self._begin()
        with self._committing(tx):
            yield tx

    @contextmanager
    def read(self, *, gives_up: bool = False) -> Iterator[Transaction]:
        """Statements that only read, each on its own snapshot.

        `gives_up`: neither a lock that somebody keeps nor a server that keeps silent is waited for.
        """
        with self._translated():
            tx = self._transaction(SILENT_SECONDS if gives_up else self._lock_seconds)
            self._local.gives_up = gives_up
            try:
                yield tx
            except BaseException:
                self._tidy_up(tx)
                raise
            finally:
                self._local.gives_up = False
            tx.close()

    def transact(self, work: Callable[[Transaction], T], tries: int = 20) -> T:
        """Run `work` in a transaction, again if somebody else was first."""
        for number in range(1, tries + 1):
            is_used = self._is_connected
            with self._translated():
                tx = self._transaction()
                tx.begin()
            try:
                with self._committing(tx):
                    return work(tx)
            except ConflictError:
                if number == tries:
                    raise
                time.sleep(min(0.002 * number, 0.05))
            except StoreUnreachableError:
                # It may have broken since its last use, as after a restart of the server, before anything happened.
                if tx.has_begun or not is_used:
                    raise
        raise AssertionError("unreachable")

    @contextmanager
    def _committing(self, tx: Transaction) -> Iterator[None]:
        try:
            with self._translated():
                yield
                tx.commit()
        except BaseException:
            self._abort(tx)
            raise
        if self.outage.is_on:
            self.outage.end()
        tx.close()
        for action in tx.after_commit:
            action()

    def close(self) -> None:
        """Close this thread's connection."""
        connection = self._let_go_of_connection()
        if connection is not None:
            connection.close()

    def dispose(self) -> None:
        self.close()
        self._engine.dispose()

    @property
    def _is_connected(self) -> bool:
        return getattr(self._local, "connection", None) is not None

    def _transaction(self, lock_seconds: float | None = None) -> Transaction:
        gone = self._gone_error()
        if gone is not None:
            # Where the file is still open, SQLite would go on writing to it, and nobody would ever read that.
            raise gone
        if self._is_connected and self._local.outages != self._outages:
            self._drop_connection()
        connection: Connection | None = getattr(self._local, "connection", None)
        if connection is None or connection.closed or connection.invalidated:
            self._local.outages = self._outages
            connection = self._local.connection = self._engine.connect()
            if self._path is not None and self._opened is None:
                with suppress(OSError):
                    self._opened = os.stat(self._path)
            CONNECTIONS.add()
            driver: Any = connection.connection.driver_connection
            is_sqlite = self.dialect == "sqlite"
            self._local.line = SqliteLine(driver) if is_sqlite else PostgresLine(driver, self._note_silence)
            if self.dialect == "postgres":
                self._local.session = driver.info.backend_pid
                self.sessions.add(self._local.session)
            self._local.lock_seconds = 0.0
        tx = Transaction(self, connection, self._local.line)
        self._limit_locks(tx, self._lock_seconds if lock_seconds is None else lock_seconds)
        return tx

    def _limit_locks(self, tx: Transaction, seconds: float) -> None:
        """Say so to the server if the connection has another limit."""
        if self.dialect == "postgres" and seconds != self._local.lock_seconds:
            tx.run(WAIT_FOR_LOCKS, {"limit": f"{round(seconds * 1000)}ms"})
            self._local.lock_seconds = seconds

    def _note_silence(self) -> None:
        error = StoreUnreachableError(
            f"the database `{self.display_name}` has not answered for {SILENT_SECONDS:.0f} s",
            hint="its disk may be stuck, or somebody holds a lock: `SELECT * FROM pg_stat_activity` tells",
        )
        self.outage.met(error)
        if getattr(self._local, "gives_up", False):
            self._drop_connection()
            raise error

    def _create_once(self, _dialect: Any, _record: Any, arguments: list[Any], options: dict[str, Any]) -> None:
        """Only the first connection may make the file: later it would be an empty one in the place of all there was."""
        if self._opened is None:
            return
        if not options.get("uri"):
            assert self._path is not None, "only files are opened this way"
            arguments[0], options["uri"] = f"file://{quote(os.fsencode(self._path))}?mode=rw", True
        elif "mode=" not in arguments[0]:
            arguments[0] += f"{'&' if '?' in arguments[0] else '?'}mode=rw"

    def _gone_error(self) -> SchemaError | None:
        """What is wrong with the file that this process has opened; None: nothing, or it has opened none."""
        if self._path is None or self._opened is None:
            return None
        try:
            found = os.stat(self._path)
        except (FileNotFoundError, NotADirectoryError):
            return gone_error(self.display_name, "the file was deleted or moved")
        except OSError:
            return None  # SQLite meets that, too, and it is told then
        if os.path.samestat(found, self._opened):
            return None
        return gone_error(self.display_name, "another file is in its place")

    def _begin(self) -> Transaction:
        is_fresh = not self._is_connected
        try:
            tx = self._transaction()
            tx.begin()
            tx.flush()
        except Exception:
            self._drop_connection()
            if is_fresh:
                raise
            # It broke since its last use, as after a restart of the server. Nothing has happened on it yet.
            tx = self._transaction()
            tx.begin()
            tx.flush()
        return tx

    def _abort(self, tx: Transaction) -> None:
        try:
            tx.rollback()
            tx.close()
        except Exception:
            # A broken connection has nothing to roll back; the next transaction opens a new one.
            self._drop_connection()

    def _tidy_up(self, tx: Transaction) -> None:
        """After something went wrong, which is what is to be told, not that a broken connection cannot be tidied up."""
        try:
            tx.close()
        except Exception:
            self._drop_connection()

    def _distrust_connections(self) -> None:
        """What broke this thread's connection has probably broken those of the others, too."""
        if self._is_connected and self._local.outages == self._outages:
            self._outages += 1
        self._drop_connection()

    def _let_go_of_connection(self) -> Connection | None:
        connection: Connection | None = getattr(self._local, "connection", None)
        self._local.connection = None
        # The server gives the number to somebody else some day.
        self.sessions.discard(getattr(self._local, "session", 0))
        return connection

    def _drop_connection(self) -> None:
        connection = self._let_go_of_connection()
        if connection is not None:
            if self.dialect == "sqlite":
                _let_go_of_lock(connection)
            connection.invalidate()
            connection.close()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Turn drivers' exceptions into ours."""
        try:
            yield
        except Exception as error:
            translated = self._translate(error)
            if translated is None:
                raise
            DATABASE_ERRORS.add(next(kind for type_, kind in _ERROR_KINDS if isinstance(translated, type_)))
            if isinstance(translated, StoreUnreachableError):
                self._distrust_connections()
            raise translated from error

    def _translate(self, error: BaseException) -> StoreError | None:
        original = getattr(error, "orig", None) or error
        if not (isinstance(error, sa_errors.SQLAlchemyError) or _is_driver_error(original)):
            return None
        gone = self._gone_error()
        if gone is not None:
            return gone
        text = str(original).strip().split("\n")[0]
        if getattr(original, "sqlstate", None) == CHECK_FAILED:
            return ConflictError(f"somebody else was first in `{self.display_name}`: a row was changed meanwhile")
        lock_seconds = getattr(self._local, "lock_seconds", 0.0)
        if getattr(original, "sqlstate", None) == _LOCK_CODE and lock_seconds:
            return StoreLockedError(
                f"gave up on `{self.display_name}` after {lock_seconds:g} s:"
                " another session keeps a lock on what was to be read or written",
                hint="`SELECT pid, state, query FROM pg_stat_activity ORDER BY xact_start` shows who; wait for its"
                " end, or end it with `SELECT pg_terminate_backend(PID)`",
            )
        if getattr(original, "sqlstate", None) in _CONFLICT_CODES or text.startswith("UNIQUE constraint failed"):
            return ConflictError(f"somebody else was first in `{self.display_name}`: {text}")
        if "database is locked" in text:
            return StoreError(
                f"could not write to `{self.display_name}`: another process kept the write lock for {BUSY_SECONDS} s",
                hint="for several agents use PostgreSQL",
            )
        if "readonly database" in text:
            return StoreUnreachableError(
                f"cannot write to `{self.display_name}`: it is read-only",
                hint="check who may write to the file and to its folder",
            )
        if _FULL[0] in text or getattr(original, "sqlstate", None) == _FULL[1]:
            return StoreUnreachableError(
                f"cannot write to `{self.display_name}`: its disk is full",
                hint="nothing is lost: make room, and it goes on",
            )
        if self._is_connection_error(original):
            if self.dialect == "sqlite":
                return file_error(self.display_name, text, self.file)
            return server_error(self.display_name, text)
        return self._schema_error(original) if may_come_from_other_tables(original) else None

    def _schema_error(self, original: BaseException) -> SchemaError | None:
        """Looked for only after something failed: reading the form of all tables takes longer than a short command."""
        try:
            with self._engine.connect() as connection:
                if is_table_missing(original) and not has_version(connection):
                    return gone_error(self.display_name, "its tables are gone")
                return self.schema_error_of(connection)
        except sa_errors.SQLAlchemyError:
            return None

    def schema_error_of(self, connection: Connection) -> SchemaError | None:
        """What is wrong with the schema; None: nothing."""
        return schema_error_of(connection, self.display_name)

    def _is_connection_error(self, original: BaseException) -> bool:
        if self.dialect == "sqlite":
            return any(words in str(original) for words in _BROKEN_SQLITE)
        name, state = type(original).__name__, getattr(original, "sqlstate", None) or ""
        names = ("OperationalError", "AdminShutdown", "InterfaceError", "ConnectionTimeout")
        return name in names or state.startswith(_UNREACHABLE_CODES)


def _let_go_of_lock(connection: Connection) -> None:
    """SQLite keeps a closed connection with its locks for as long as anything refers to one of its cursors."""
    driver = connection.connection.driver_connection
    if driver is not None:
        try:
            driver.rollback()
        except Exception:
            return  # there is nothing that could be rolled back


def _is_driver_error(error: BaseException) -> bool:
    return type(error).__module__.split(".")[0] in ("sqlite3", "psycopg")


def _as_url(given: str) -> str:
    """A bare path means SQLite."""
    return given if "://" in given else f"sqlite:///{Path(given).absolute()}"


def _shown(url: str) -> str:
    try:
        parsed = make_url(url)
    except (sa_errors.ArgumentError, ValueError):
        return without_password(url)
    if parsed.password is None and "password" not in parsed.query:
        return url
    return parsed.difference_update_query(["password"]).render_as_string(hide_password=True)


def _with_driver(url: str) -> str:
    """All of these mean psycopg 3 here; the last is what Airflow's configuration has."""
    for prefix in ("postgres://", "postgresql://", "postgresql+psycopg2://"):
        if url.startswith(prefix):
            return "postgresql+psycopg://" + url[len(prefix) :]
    return url


def _supported(url: str) -> str:
    kind = url.partition("://")[0].partition("+")[0]
    if kind not in ("sqlite", "postgresql"):
        raise StoreUnreachableError(
            f"cannot use a `{kind}` database as a store: only SQLite and PostgreSQL are supported",
            hint="use sqlite:///PATH or postgresql://…",
        )
    return url


def _engine(url: str, shown: str) -> Engine:
    try:
        parsed = _parsed(url, shown)
        engine = create_engine(
            parsed, poolclass=NullPool, isolation_level="AUTOCOMMIT", connect_args=_connect_args(url)
        )
    except (sa_errors.SQLAlchemyError, ImportError, ValueError) as error:
        hint = 'pip install "headrace[postgres]"' if "psycopg" in str(error) else "use sqlite:///PATH or postgresql://…"
        raise StoreUnreachableError(f"cannot use `{shown}` as a store: {error}", hint=hint) from error
    event.listen(engine, "before_cursor_execute", _storable_parameters, retval=True)
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _prepare_sqlite)
    elif engine.dialect.name == "postgresql":
        event.listen(engine, "connect", _prepare_postgres)
    else:
        raise StoreUnreachableError(f"cannot use `{shown}` as a store", hint="use sqlite:///PATH or postgresql://…")
    return engine


def _parsed(url: str, shown: str) -> URL:
    try:
        return make_url(url)
    except ValueError as error:
        raise port_error(shown) from error  # nothing else in it is read as a number


def _connect_args(url: str) -> dict[str, Any]:
    if url.startswith("sqlite"):
        return {"timeout": BUSY_SECONDS, "check_same_thread": False}
    given = make_url(url).query
    return {name: value for name, value in (_CONNECTING | _KEEPALIVES).items() if name not in given}


def _storable_parameters(
    _connection: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, _is_many: bool
) -> tuple[str, Any]:
    """What the lines do for hot statements, for those of SQLAlchemy."""
    return statement, _storable(parameters)


def _storable(parameters: Any) -> Any:
    if isinstance(parameters, str):
        return storable(parameters)
    if isinstance(parameters, Mapping):
        return {name: _storable(value) for name, value in parameters.items()}
    if isinstance(parameters, list | tuple):
        return type(parameters)(map(_storable, parameters))
    return parameters


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # transactions are begun by hand, as BEGIN IMMEDIATE
    for pragma in (
        f"busy_timeout = {BUSY_SECONDS * 1000}",
        "synchronous = NORMAL",
        "foreign_keys = ON",
        "cache_size = -16000",
        "temp_store = MEMORY",
    ):
        connection.execute(f"PRAGMA {pragma}")


def _prepare_postgres(connection: Any, _record: Any) -> None:
    connection.execute(f"SET idle_in_transaction_session_timeout = '{FROZEN_SECONDS}s'")
    # Every hot statement has its index. A plan that was made and kept while the tables were small would otherwise read
    # whole tables for as long as the connection lives; compiling statements costs more than running them, and so does
    # planning them anew for each list of parameters.
    for habit in ("enable_seqscan", "enable_hashjoin", "enable_mergejoin", "jit"):
        connection.execute(f"SET {habit} = off")
    connection.execute("SET plan_cache_mode = force_generic_plan")
    connection.commit()
