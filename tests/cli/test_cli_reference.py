"""The help is quick, and the reference says what the help says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from headrace.cli.main import COMMANDS
from headrace.cli.reference import reference

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"


def test_the_reference_is_fresh():
    assert PAGE.read_text() == reference(), "run: python -m headrace.cli.reference > docs/reference/cli.md"


def test_every_command_has_its_heading():
    headings = [line for line in PAGE.read_text().splitlines() if line.startswith("## ")]
    assert {f"## headrace {name}" for name in COMMANDS} <= set(headings)


def modules_after(code):
    listing = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print('\\n'.join(sys.modules))"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return set(listing.stdout.splitlines())


def test_help_imports_no_command_and_no_database():
    loaded = modules_after("from headrace.cli.main import run_command; run_command(['--help'])")
    assert not any(name.startswith("headrace.cli.commands.") or name == "sqlalchemy" for name in loaded)


def test_run_starts_its_child_before_it_imports_the_database():
    assert "sqlalchemy" not in modules_after("import headrace.cli.commands.run")


def test_run_leaves_heavy_libraries_to_the_task_processes():
    loaded = modules_after("import headrace.cli.local_run")
    assert loaded.isdisjoint({"alembic", "jinja2", "pendulum", "yaml", "watchfiles"})
