"""The real command with a home of its own for each test, in a real process wherever that makes a difference."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
import textwrap
from types import SimpleNamespace
from unittest.mock import patch

import pytest

from headrace.cli.main import run_command

LIVING = ("run", "retry", "agent", "scheduler", "standalone", "triggerer")
"""Commands that start processes or listen for signals; all others ask the database something, print, and are done."""


class Command:
    """Writes workflow files and runs `headrace`."""

    def __init__(self, folder):
        self.folder = folder
        self.home = folder / "home"
        self.environ = {name: text for name, text in os.environ.items() if not name.startswith("HEADRACE_")}
        self.environ["HEADRACE_HOME"] = str(self.home)

    def write(self, name, text):
        path = self.folder / "flows" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return str(path)

    def dag(self, body, name="flow"):
        """A file with one DAG; `body` is what stands in its `with` block."""
        head = "import os, signal, sys, time\nfrom airflow.sdk import DAG, task\n\n"
        return self.write(
            f"{name}.py", f"{head}with DAG({name!r}, schedule=None):\n" + textwrap.indent(textwrap.dedent(body), "    ")
        )

    def start(self, *arguments, **environ):
        command = [sys.executable, "-m", "headrace.cli", *arguments]
        return subprocess.Popen(
            command, env={**self.environ, **environ}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            cwd=self.folder, start_new_session=True,
        )  # fmt: skip

    @staticmethod
    def read_until(process, text):
        """What a process writes to stderr up to the line with `text`, however long that takes it."""
        seen = ""
        while text not in seen:
            line = process.stderr.readline()
            assert line, f"it ended: {seen}"
            seen += line
        return seen

    def __call__(self, *arguments, **environ):
        """Run a command to its end: what it printed and its exit code."""
        return self.process(*arguments, **environ) if arguments[0] in LIVING else self._here(*arguments, **environ)

    def process(self, *arguments, **environ):
        """Run a command as a process of its own."""
        process = self.start(*arguments, **environ)
        process.out, process.err = process.communicate(timeout=60)
        return process

    def _here(self, *arguments, **environ):
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
        with (
            contextlib.chdir(self.folder),
            patch.dict(os.environ, {**self.environ, **environ}, clear=True),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            code = run_command(arguments)
        return SimpleNamespace(out=_text(out), err=_text(err), returncode=code)

    def json(self, *arguments, **environ):
        """The last line of stdout, and the exit code."""
        done = self(*arguments, "--json", **environ)
        return json.loads(done.out.splitlines()[-1]), done.returncode


def _text(stream):
    stream.flush()
    return stream.buffer.getvalue().decode()


@pytest.fixture
def headrace(tmp_path):
    return Command(tmp_path)
