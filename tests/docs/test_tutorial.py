"""The tutorial does what it says: its files are written, its commands run, and their output is compared.

A code block's first line names its kind, and after it either the file that it is or how it is checked: `exit=1` is the
exit code of the block's last command, and `no-run` skips it (its commands are parsed by `test_doc_commands.py`). A
`text` block holds lines of the output of the commands before it, in any order; `…` stands for anything.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from pages import ROOT, blocks_of

PAGE = ROOT / "docs" / "tutorial" / "first-workflow.md"


class Reader:
    """A person who types what the page says, in one terminal."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._remembered = folder.parent / "environment"
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("HEADRACE_")}
        self._environment["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"

    def save(self, name: str, text: str) -> None:
        path = self._folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def type(self, commands: str) -> tuple[int, str]:
        """The exit code of the last command, and what all of them printed. Exported variables stay."""
        script = f'{commands}\ncode=$?\nenv -0 > "{self._remembered}"\nexit $code\n'
        done = subprocess.run(
            ["bash", "-c", script], cwd=self._folder, env=self._environment, text=True, timeout=60,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        lines = self._remembered.read_text().split("\0")
        self._environment = dict(line.split("=", 1) for line in lines if line)
        return done.returncode, done.stdout


def is_said(line: str, output: str) -> bool:
    pattern = ".*".join(re.escape(part) for part in line.split("…"))
    return re.search(f"^{pattern}$", output, re.MULTILINE) is not None


def test_what_the_tutorial_shows(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    reader, output = Reader(folder), ""
    for block in blocks_of(PAGE):
        place = f"{PAGE.name}:{block.line}"
        if block.language == "text":
            missing = [line for line in block.text.splitlines() if not is_said(line, output)]
            assert not missing, f"{place}: {missing} not in\n{output}"
        elif block.language == "sh" and block.note != "no-run":
            code, output = reader.type(block.text)
            assert code == int(block.note.removeprefix("exit=") or 0), f"{place}: left with {code}\n{output}"
        elif block.language in ("python", "yaml"):
            reader.save(block.note, block.text)
