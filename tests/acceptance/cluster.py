"""The cluster of the fault harness, with the workflows of this folder."""

from __future__ import annotations

import shutil
from pathlib import Path

from headrace.testing.faults import cluster as real
from headrace.testing.faults.cluster import LEASE_SECONDS, LONG_SECONDS
from headrace.testing.faults.members import Member, kill

__all__ = ["LEASE_SECONDS", "LONG_SECONDS", "Cluster", "Member", "kill"]

WORKFLOWS = Path(__file__).parent / "workflows"


class Cluster(real.Cluster):
    """Prints what its members said, for the report of a test that failed."""

    def bring(self, *names: str) -> None:
        """Copy workflows of this test folder into the project."""
        for name in names:
            shutil.copy(WORKFLOWS / name, self.project)

    def close(self) -> None:
        try:
            super().close()
        finally:
            print(self.stderr())
