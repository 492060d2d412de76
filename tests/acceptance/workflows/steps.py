"""Functions that `nested.dig` calls."""

import json
import os
from pathlib import Path

import digdag


def count(words):
    digdag.env.store({"counted": len(json.loads(words))})


def third_time(name):
    """Fails twice, counted in a file because every try has a process of its own."""
    path = Path(os.environ["NESTED_FOLDER"]) / name
    seen = len(path.read_text()) if path.exists() else 0
    path.write_text("x" * (seen + 1))
    if seen < 2:
        raise RuntimeError(f"time {seen + 1} is too early")
