"""`asset>`: says that an asset was updated, when the task has succeeded."""

from __future__ import annotations

from headrace.authoring.dig import as_map, as_text
from headrace.handoff import AssetEvent
from headrace.operators.dig.contract import Job, OperatorError, Outcome

_LONGEST_KEY = 250


def run_asset(job: Job) -> Outcome:
    """Emit an event of the asset of this name, or of one partition; `extra` is a map of what there is to say."""
    name = job.params.text("_command")
    partition = job.params.read("partition_key", as_text, "") or None
    if partition is not None and ("\0" in partition or len(partition) > _LONGEST_KEY):
        raise OperatorError(f"expected `partition_key` to have at most {_LONGEST_KEY} characters, got: {partition!r}")
    extra = job.params.read("extra", as_map, {})
    return Outcome(events=(AssetEvent(asset=name, extra=extra, partition_key=partition),))
