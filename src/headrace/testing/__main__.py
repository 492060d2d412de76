"""Execute a DAG file as a program, with Airflow's import paths: `python -m headrace.testing flow.py test`."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from headrace.compat.airflow import install


def main() -> None:
    """What `python flow.py` would do if Airflow were installed."""
    if len(sys.argv) < 2:
        sys.exit("error: expected the name of a DAG file\nhint: `python -m headrace.testing flow.py`")
    path = Path(sys.argv[1])
    if not path.is_file():
        sys.exit(f"error: there is no file `{path}`")
    install()
    sys.argv = sys.argv[1:]
    sys.path.insert(0, str(path.resolve().parent))
    runpy.run_path(str(path), run_name="__main__")


if __name__ == "__main__":
    main()
