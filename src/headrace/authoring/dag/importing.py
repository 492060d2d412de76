"""Lets a process that a task spawned import what the task's own process has loaded: its DAG file, and `airflow`.

Such a process is a fresh interpreter that is told names of modules. In that of a DAG file's module there are the file's
own name and a digest of its place, and the folder is on the path.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType

from headrace.authoring.dag.loading import module_name, serve_import_paths
from headrace.authoring.dag.plugin_folder import put_plugins_on_path

_NAME = re.compile(r"headrace_dag_[0-9a-f]{16}_(?P<stem>.+)")


def serve_spawned_process() -> None:
    """Have the imports of DAG files work in this process, and those of the files themselves by their modules' names."""
    serve_import_paths()
    put_plugins_on_path()
    sys.meta_path.append(_DagFiles)


class _DagFiles:
    @classmethod
    def find_spec(
        cls, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        match = _NAME.fullmatch(name)
        if match is None:
            return None
        files = (Path(folder) / f"{match['stem']}.py" for folder in sys.path)
        file = next((str(one) for one in files if module_name(one) == name and one.is_file()), None)
        return None if file is None else spec_from_file_location(name, file, loader=_Uncached(name, file))


class _Uncached(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        # As where the task has it from: a cache takes an edit within the same second for no edit.
        return self.source_to_code(self.get_data(self.path), self.path)
