"""What a process runs first that a task starts by `multiprocessing`, unless it is forked.

It is a fresh interpreter that is told the name of its parent's main module, and imports that before anything else: a
place for what task processes have and it lacks. That is heavy, so that it is got only by those who need it.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType

NAME = "headrace.runner.spawned"
# Named, not imported: most processes want neither.
_IMPORTING = "headrace.authoring.dag.importing"


class _UntilWanted:
    """Sees the first import of something that only DAG files have."""

    @classmethod
    def find_spec(
        cls, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != "airflow" and not name.startswith("headrace_dag_"):
            return None
        sys.meta_path.remove(cls)
        importlib.import_module(_IMPORTING).serve_spawned_process()
        return find_spec(name)


if __name__ == "__mp_main__":
    sys.meta_path.insert(0, _UntilWanted)
