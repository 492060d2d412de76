"""What an installation of Airflow says about itself to providers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

AIRFLOW_HOME = str(Path(os.environ.get("AIRFLOW_HOME") or "~/airflow").expanduser())


def pod_mutation_hook(pod: Any) -> None:
    """Installations may change every pod before it is started; this one does not."""
