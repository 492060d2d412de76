"""The real command in a real process, each test with a home of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

import pytest


class Command:
    """Writes workflow files and runs `headrace`."""

    def __init__(self, folder):
        self.folder = folder
        self.home = folder / "home"
        self.environ = {name: text for name, text in os.environ.items() if not name.startswith("HEADRACE_")}
        self.environ["HEADRACE_HOME"] = str(self.home)

    def write(self, name, text):
        path = self.folder / "flows" / name
        path.parent.mkdir(exist_ok=True)
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

    def __call__(self, *arguments, **environ):
        process = self.start(*arguments, **environ)
        process.out, process.err = process.communicate(timeout=60)
        return process

    def json(self, *arguments, **environ):
        """The last line of stdout, and the exit code."""
        done = self(*arguments, "--json", **environ)
        return json.loads(done.out.splitlines()[-1]), done.returncode


@pytest.fixture
def headrace(tmp_path):
    return Command(tmp_path)
