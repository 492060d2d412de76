"""Tasks that call a Python function in a virtual environment that is made for them."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

from headrace.authoring.dag import Connection, Context
from headrace.authoring.dag.exceptions import AirflowException
from headrace.operators.branch import follow
from headrace.operators.external_python import OutsidePythonOperator
from headrace.operators.python import PythonOperator

_COMPLETE = "headrace-complete"
"""The file that an environment in the cache has once everything is installed in it."""

_PACKAGES = ("cloudpickle", "dill")
"""Serializers that do not come with Python."""


class PythonVirtualenvOperator(OutsidePythonOperator):
    """Calls a function in a fresh virtual environment with the given packages.

    With `venv_cache_path`, environments are kept in that folder and shared by all tasks that want the same one.
    """

    operator_name = "virtualenv"
    template_fields: Sequence[str] = (
        *("requirements", "index_urls", "index_urls_from_connection_ids", "venv_cache_path"),
        *PythonOperator.template_fields,
    )
    template_ext: Sequence[str] = (".txt",)

    def __init__(
        self,
        *,
        requirements: str | Iterable[str] | None = None,
        python_version: str | float | None = None,
        system_site_packages: bool = True,
        pip_install_options: Sequence[str] | None = None,
        index_urls: str | Sequence[str] | None = None,
        index_urls_from_connection_ids: str | Sequence[str] | None = None,
        venv_cache_path: str | os.PathLike[str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.requirements: Any = requirements if isinstance(requirements, str) else list(requirements or ())
        self.python_version = None if python_version is None else str(python_version)
        self.system_site_packages = system_site_packages
        self.pip_install_options = list(pip_install_options or ())
        self.index_urls: Any = _listed(index_urls)
        self.index_urls_from_connection_ids: Any = _listed(index_urls_from_connection_ids)
        self.venv_cache_path = venv_cache_path

    def call(self, context: Context) -> Any:
        self.index_urls = [*self.index_urls, *map(_index_url, self.index_urls_from_connection_ids)]
        with self._environment_folder() as folder:
            return self.call_with(_interpreter(folder), context)

    @contextmanager
    def _environment_folder(self) -> Iterator[Path]:
        if self.venv_cache_path is None:
            with tempfile.TemporaryDirectory(prefix="headrace-venv-") as folder:
                self._make(Path(folder))
                yield Path(folder)
        else:
            yield self._cached(Path(self.venv_cache_path))

    def _cached(self, cache: Path) -> Path:
        cache.mkdir(parents=True, exist_ok=True)
        folder = cache / f"venv-{self._fingerprint()}"
        # Only one of those who want it makes it, and a half-made one counts for nothing.
        with open(f"{folder}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (folder / _COMPLETE).exists():
                shutil.rmtree(folder, ignore_errors=True)
                self._make(folder)
                (folder / _COMPLETE).touch()
        return folder

    def _fingerprint(self) -> str:
        wants = [
            self._requirements(),
            self.pip_install_options,
            self.index_urls,
            self.python_version or sys.version,
            self.system_site_packages,
        ]
        return hashlib.sha256(json.dumps(wants).encode()).hexdigest()[:16]

    def _make(self, folder: Path) -> None:
        uv = _find("uv")
        requirements = self._requirements()
        if uv is not None:
            version = self.python_version or sys.executable
            site = ["--system-site-packages"] if self.system_site_packages else []
            self._install([uv, "venv", "--quiet", "--allow-existing", "--python", version, *site, str(folder)])
        else:
            site = ["--system-site-packages"] if self.system_site_packages else []
            without = [] if requirements else ["--without-pip"]
            self._install([self._base_python(), "-m", "venv", *site, *without, str(folder)])
        if requirements:
            self._install_requirements(uv, folder, requirements)

    def _install_requirements(self, uv: str | None, folder: Path, requirements: list[str]) -> None:
        python = str(_interpreter(folder))
        pip = [python, "-m", "pip", "install"] if uv is None else [uv, "pip", "install", "--python", python]
        with tempfile.NamedTemporaryFile("w", suffix=".txt", prefix="headrace-requirements-") as file:
            file.write("\n".join(requirements))
            file.flush()
            self._install([*pip, *self.pip_install_options, "-r", file.name])

    def _install(self, command: Sequence[str]) -> None:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | self._indexes(),
            check=False,
        )
        sys.stdout.write(done.stdout)
        if done.returncode != 0:
            raise AirflowException(
                f"could not make the virtual environment of task `{self.task_id}`: `{Path(command[0]).name}"
                f" {' '.join(command[1:3])}` exited with {done.returncode}"
            )

    def _indexes(self) -> dict[str, str]:
        """Where packages come from. In the environment, because everybody can see a command with its passwords."""
        if not self.index_urls:
            return {}
        first, rest = self.index_urls[0], " ".join(self.index_urls[1:])
        indexes = {"UV_DEFAULT_INDEX": first, "PIP_INDEX_URL": first}
        return indexes | ({"UV_INDEX": rest, "PIP_EXTRA_INDEX_URL": rest} if rest else {})

    def _base_python(self) -> str:
        if self.python_version is None:
            return sys.executable
        found = _find(f"python{self.python_version}")
        if found is None:
            raise AirflowException(f"task `{self.task_id}` wants Python {self.python_version}, which is not installed")
        return found

    def _requirements(self) -> list[str]:
        lines = self.requirements.splitlines() if isinstance(self.requirements, str) else self.requirements
        wanted = [line.strip() for line in lines if line.strip()]
        # What both sides exchange objects with, unless the environment sees the packages of this one.
        is_lacking = self.serializer in _PACKAGES and self.serializer not in wanted and not self.system_site_packages
        return [*wanted, self.serializer] if is_lacking else wanted


class BranchPythonVirtualenvOperator(PythonVirtualenvOperator):
    """Follows the tasks or groups whose ids its function returns."""

    operator_name = "branch_virtualenv"

    def execute(self, context: Context) -> Any:
        return follow(self, context, super().execute(context))


def _listed(value: str | Sequence[str] | None) -> list[str]:
    return [value] if isinstance(value, str) else list(value or ())


def _index_url(conn_id: str) -> str:
    """The address of a package index, with the name and the password that its connection has."""
    connection = Connection.get(conn_id)
    if not connection.host:
        raise AirflowException(f"connection `{conn_id}` names no package index: it has no host")
    parts = urlsplit(connection.host)
    if not connection.login:
        return connection.host
    name = ":".join(quote(word, safe="") for word in (connection.login, connection.password or "") if word)
    return urlunsplit(parts._replace(netloc=f"{name}@{parts.netloc}"))


def _interpreter(folder: Path) -> Path:
    return folder / "bin" / "python"


def _find(program: str) -> str | None:
    """A program that is installed beside this Python, or anywhere on the path."""
    return shutil.which(program, path=os.path.dirname(sys.executable)) or shutil.which(program)
