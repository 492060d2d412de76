"""`DagBag`: every DAG of a folder as objects, for tests that look at them. Files are loaded in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headrace.authoring.dag import DAG
from headrace.authoring.dag.loading import load_dag_file
from headrace.errors import HeadraceError
from headrace.projects import Discovery, find_files


class DagBag:
    """The DAGs of a folder or of one file, and why some files have none."""

    def __init__(
        self, dag_folder: str | Path | None = None, include_examples: bool = False, safe_mode: bool = True, **_: Any
    ) -> None:
        self.dag_folder = str(dag_folder or Path.cwd())
        self.dags: dict[str, DAG] = {}
        self.import_errors: dict[str, str] = {}
        self._discovery = Discovery(is_safe=safe_mode)
        self.collect_dags(self.dag_folder)

    def collect_dags(self, dag_folder: str | Path) -> None:
        """Load every file of a folder that may hold DAGs, or one file."""
        path = Path(dag_folder)
        if path.is_dir():
            for file in find_files(path, self._discovery):
                if not file.endswith(".dig"):
                    self._take(path, file)
        else:
            self._take(path.parent, path.name)

    def process_file(self, filepath: str | Path, **_: Any) -> list[DAG]:
        """Load one file; returns its DAGs."""
        path = Path(filepath)
        before = set(self.dags)
        self._take(path.parent, path.name)
        return [dag for dag_id, dag in self.dags.items() if dag_id not in before]

    def _take(self, root: Path, file: str) -> None:
        try:
            found = load_dag_file(root, file).dags
        except HeadraceError as error:
            detail = getattr(error, "detail", None)
            self.import_errors[str(root / file)] = f"{error}\n{detail}" if detail else str(error)
            return
        for dag_id, dag in found.items():
            other = self.dags.setdefault(dag_id, dag)
            if other is not dag:
                self.import_errors[str(root / file)] = f"DAG `{dag_id}` is already in `{other.fileloc}`"

    @property
    def dag_ids(self) -> list[str]:
        return list(self.dags)

    def get_dag(self, dag_id: str, session: Any = None) -> DAG | None:
        return self.dags.get(dag_id)

    def size(self) -> int:
        """How many DAGs there are."""
        return len(self.dags)
