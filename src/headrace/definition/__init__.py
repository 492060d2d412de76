"""The compiled workflow as frozen data: nodes, edges, retries, schedules; graph checks; JSON form and digest.

Front ends end here and the engine begins here. This room imports nothing of ours but `errors`.
"""

from headrace.definition.codec import digest, node_from_json, nodes_from_json, to_json, workflow_from_json
from headrace.definition.graph import check_nodes, check_workflow, find_cycle, leaves
from headrace.definition.param_schemas import invalid_schema, schema_problem
from headrace.definition.workflow import (
    CRON_PRESETS,
    NOOP,
    NOTIFY,
    ROOT,
    RUN_LATE,
    TASKS_LATE,
    TRIGGER_RULES,
    AssetUse,
    Data,
    Deadline,
    Deferral,
    Ending,
    Isolation,
    Kind,
    Length,
    Node,
    Past,
    Place,
    Retry,
    Schedule,
    Workflow,
)

__all__ = [
    "CRON_PRESETS",
    "NOOP",
    "NOTIFY",
    "ROOT",
    "RUN_LATE",
    "TASKS_LATE",
    "TRIGGER_RULES",
    "AssetUse",
    "Data",
    "Deadline",
    "Deferral",
    "Ending",
    "Isolation",
    "Kind",
    "Length",
    "Node",
    "Past",
    "Place",
    "Retry",
    "Schedule",
    "Workflow",
    "check_nodes",
    "check_workflow",
    "digest",
    "find_cycle",
    "invalid_schema",
    "leaves",
    "node_from_json",
    "nodes_from_json",
    "schema_problem",
    "to_json",
    "workflow_from_json",
]
