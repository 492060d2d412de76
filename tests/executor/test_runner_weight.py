"""The warm parent must stay small: a fork costs about a millisecond per 15 MB."""

from __future__ import annotations

import psutil
from toy_project import run_all, value_of

MANY_MODULES = """
    import sys
    NAMES = sorted(sys.modules)
    def modules(request, channel): return NAMES
    def parent(request, channel):
        import os
        return os.getppid()
"""


def test_no_heavy_library_is_loaded_before_the_users_file(local, project):
    project.write(MANY_MODULES)
    (result,) = run_all(local(), project.request("modules"))
    loaded = {name.split(".")[0] for name in value_of(result)}
    assert not loaded & {"sqlalchemy", "alembic", "click", "asyncio", "jinja2", "yaml", "pendulum", "multiprocessing"}
    assert "headrace.executor" not in value_of(result)
    assert "headrace.store" not in value_of(result)


def test_a_trivial_file_needs_less_than_30_mb(local, project):
    project.write(MANY_MODULES)
    (result,) = run_all(local(), project.request("parent"))
    assert psutil.Process(value_of(result)).memory_info().rss < 30_000_000


def test_garbage_of_a_task_is_collected(local, project):
    project.write("import gc\ndef state(request, channel): return [gc.isenabled(), gc.get_freeze_count() > 1000]")
    (result,) = run_all(local(), project.request("state"))
    assert value_of(result) == [True, True]
