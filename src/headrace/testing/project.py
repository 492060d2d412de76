"""A project on disk: write files, run commands, compare what they print."""

from __future__ import annotations

import importlib
import io
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

# Named, not imported: the command line builds on everything, this room included.
_COMMANDS = "headrace.cli.main"


class Completed(NamedTuple):
    """What a command left behind."""

    exit_code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What it printed, read as JSON."""
        return json.loads(self.out)

    def check(self) -> Completed:
        """Itself if it went well; otherwise an error that shows what it said."""
        if self.exit_code != 0:
            raise AssertionError(f"the command left with {self.exit_code}:\n{self.out}{self.err}")
        return self


class Project:
    """A folder with workflow files and, beside it, a home of its own for settings, database and logs."""

    def __init__(self, folder: Path, environment: Mapping[str, str] | None = None) -> None:
        self.root = folder / "project"
        self.home = folder / "home"
        self.root.mkdir(parents=True, exist_ok=True)
        self.home.mkdir(parents=True, exist_ok=True)
        self._environment = {"HEADRACE_HOME": str(self.home), **(environment or {})}

    def write(self, file: str, text: str) -> Path:
        """Write a file of the project; its text may be indented."""
        path = self.root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip("\n"))
        return path

    def read(self, file: str) -> str:
        return (self.root / file).read_text()

    def files(self) -> list[str]:
        """Every file of the project, sorted."""
        return sorted(path.relative_to(self.root).as_posix() for path in self.root.rglob("*") if path.is_file())

    def run(self, *arguments: str, input: str | None = None, timeout_seconds: float = 60.0) -> Completed:
        """Run a command as a process of its own, in the project's folder."""
        done = subprocess.run(
            [sys.executable, "-m", "headrace.cli", *arguments],
            cwd=self.root,
            env={**os.environ, **self._environment},
            input=input,
            capture_output=True,
            text=True,
            timeout=timeout_seconds,
            check=False,
        )
        return Completed(done.returncode, done.stdout, done.stderr)

    def call(self, *arguments: str) -> Completed:
        """Run a command in this process, which is faster but shares its modules and its environment."""
        run_command = importlib.import_module(_COMMANDS).run_command
        out, err = io.StringIO(), io.StringIO()
        with self._inside(), redirect_stdout(out), redirect_stderr(err):
            try:
                code = run_command(arguments)
            except SystemExit as left:
                code = left.code if isinstance(left.code, int) else int(left.code is not None)
        return Completed(code, out.getvalue(), err.getvalue())

    @contextmanager
    def _inside(self) -> Iterator[None]:
        """The project's folder and environment, for a moment."""
        folder, before = Path.cwd(), {name: os.environ.get(name) for name in self._environment}
        os.environ.update(self._environment)
        os.chdir(self.root)
        try:
            yield
        finally:
            os.chdir(folder)
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value
