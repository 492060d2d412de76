"""`asset>`: says that an asset was updated, when the task has succeeded."""

from __future__ import annotations

from headrace.authoring.dig import as_map
from headrace.handoff import AssetEvent
from headrace.operators.dig.contract import Job, Outcome


def run_asset(job: Job) -> Outcome:
    """Emit an event of the asset of this name; `extra` is a map of what there is to say about it."""
    name = job.params.text("_command")
    return Outcome(events=(AssetEvent(asset=name, extra=job.params.read("extra", as_map, {})),))
