"""Names of Airflow's web server that some task modules pass on. Nothing here asks for permissions."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from headrace.authoring.dag.exceptions import AirflowException


@dataclass
class AssetDetails:
    id: str | None = None


@dataclass
class AssetAliasDetails:
    id: str | None = None


class AccessView(Enum):
    """What a user may want to see."""

    CLUSTER_ACTIVITY = "CLUSTER_ACTIVITY"
    DOCS = "DOCS"
    IMPORT_ERRORS = "IMPORT_ERRORS"
    JOBS = "JOBS"
    PLUGINS = "PLUGINS"
    PROVIDERS = "PROVIDERS"
    TRIGGERS = "TRIGGERS"
    WEBSITE = "WEBSITE"


def expand_alias_to_assets(alias: Any, *args: Any, **kwargs: Any) -> Any:
    """Airflow asks its database for that, which no task can reach."""
    raise AirflowException(f"cannot look up the assets behind {alias!r}: tasks have no way to the database")
