"""What the `.dig` workflows of the load call."""

from __future__ import annotations

from noting import FOLDER, noted, work


def step(workflow, attempt_id, task_name, limit_name="", limit=0):
    limits = {f"{workflow} {attempt_id} {limit_name}": int(limit)} if limit_name else {}
    with noted(workflow, attempt_id, task_name, limits=limits):
        work()


def second_time(workflow, attempt_id, task_name):
    """Fails once, counted in a file because every try has a process of its own."""
    path = FOLDER / f"seen {workflow} {attempt_id}"
    with noted(workflow, attempt_id, task_name):
        if not path.exists():
            path.touch()
            raise RuntimeError("the first time is too early")
