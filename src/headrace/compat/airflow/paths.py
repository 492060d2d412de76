"""The one table of Airflow's import paths: module → name → where the object lives here (`module:name`).

Old and new spellings of one thing lead to the same object. Objects are imported when a file asks for them.
"""

from __future__ import annotations

_DAG = "headrace.authoring.dag"


def _names(module: str, *names: str) -> dict[str, str]:
    return {name: f"{module}:{name}" for name in names}


_dag = _names(_DAG, "DAG", "dag")
_decorators = _names(_DAG, "dag", "task", "task_group", "setup", "teardown")
_edges = _names(_DAG, "chain", "chain_linear", "cross_downstream")
_labels = _names(_DAG, "Label", "EdgeModifier")
_params = _names(_DAG, "Param", "ParamsDict")
_param_references = _names(f"{_DAG}.params", "DagParam")
_stored = _names(_DAG, "Variable", "Connection")
_results = _names(_DAG, "XComArg")
_rules = _names(_DAG, "TriggerRule", "WeightRule")
_states = _names(_DAG, "State", "TaskInstanceState", "DagRunState")
_context = _names(_DAG, "get_current_context", "Context")
_literal = _names(_DAG, "literal")
_operator = _names(_DAG, "BaseOperator")
_group = _names(_DAG, "TaskGroup")
_mapped = _names(f"{_DAG}.mapped", "MappedOperator")
_run = _names(f"{_DAG}.task_instance", "DagRun", "TaskInstance")
_dates = _names("headrace.compat.airflow.dates", "days_ago", "cron_presets")
_timezone = _names(
    "headrace.compat.airflow.dates",
    *("utc", "utcnow", "datetime", "parse", "make_aware", "make_naive", "convert_to_utc", "coerce_datetime"),
    "is_localized",
)
_exceptions = _names(
    f"{_DAG}.exceptions",
    *("AirflowException", "AirflowSkipException", "AirflowFailException", "AirflowSensorTimeout"),
    *("AirflowRescheduleException", "AirflowNotFoundException", "AirflowBadRequest", "AirflowConfigException"),
    *("AirflowDagCycleException", "AirflowDagDuplicatedIdException", "AirflowClusterPolicyViolation"),
    *("AirflowTimetableInvalid", "AirflowTaskTimeout", "AirflowTaskTerminated", "FailFastDagInvalidTriggerRule"),
    *("DagNotFound", "DagRunNotFound", "DagRunAlreadyExists", "TaskNotFound", "TaskInstanceNotFound", "PoolNotFound"),
    *("DuplicateTaskIdFound", "TaskAlreadyInTaskGroup", "ParamValidationError", "XComNotFound"),
    *("TaskDeferred", "TaskDeferralError", "TaskDeferralTimeout"),
    *("XComForMappingNotPushed", "UnmappableXComTypePushed", "SerializationError"),
    *("RemovedInAirflow3Warning", "RemovedInAirflow4Warning", "AirflowProviderDeprecationWarning"),
)
_branch = _names("headrace.operators.branch", "BranchPythonOperator", "ShortCircuitOperator")
_branch_parent = _names("headrace.operators.branch", "BaseBranchOperator")
_python = _names("headrace.operators.python", "PythonOperator") | _branch
_bash = _names("headrace.operators.bash", "BashOperator")
_empty = _names("headrace.operators.empty", "EmptyOperator")
_dummy = {"DummyOperator": _empty["EmptyOperator"]}
_triggers = _names(
    f"{_DAG}.triggers",
    *("BaseTrigger", "BaseEventTrigger", "TriggerEvent", "BaseTaskEndEvent", "TaskSuccessEvent", "TaskFailedEvent"),
    *("TaskSkippedEvent", "StartTriggerArgs"),
)
_external_triggers = _names("headrace.operators.triggers", "WorkflowTrigger", "DagStateTrigger", "ExternalTaskTrigger")
_file_triggers = _names("headrace.operators.triggers", "FileTrigger", "FileDeleteTrigger")
_time_triggers = _names("headrace.operators.triggers", "DateTimeTrigger", "TimeDeltaTrigger")
_version = {"__version__": "headrace.compat.airflow.shims:AIRFLOW_VERSION"}

_providers = "airflow.providers.standard"

PATHS: dict[str, dict[str, str]] = {
    "airflow": _version | _names(_DAG, "DAG", "XComArg"),
    "airflow.decorators": _decorators,
    "airflow.decorators.base": {},
    "airflow.decorators.python": {},
    "airflow.decorators.task_group": _names(_DAG, "task_group"),
    "airflow.exceptions": _exceptions,
    "airflow.models": _names(_DAG, "DAG") | _operator | _params | _stored | _results | _run | _mapped,
    "airflow.models.abstractoperator": {},
    "airflow.models.baseoperator": _operator | _edges,
    "airflow.models.connection": _names(_DAG, "Connection"),
    "airflow.models.dag": _dag,
    "airflow.models.dagrun": _names(f"{_DAG}.task_instance", "DagRun"),
    "airflow.models.mappedoperator": _mapped,
    "airflow.models.param": _params | _param_references,
    "airflow.models.taskinstance": _names(f"{_DAG}.task_instance", "TaskInstance"),
    "airflow.models.variable": _names(_DAG, "Variable"),
    "airflow.models.xcom_arg": _results,
    "airflow.operators": {},
    "airflow.operators.bash": _bash,
    "airflow.operators.bash_operator": _bash,
    "airflow.operators.branch": _branch_parent,
    "airflow.operators.branch_operator": _branch_parent,
    "airflow.operators.dummy": _dummy,
    "airflow.operators.dummy_operator": _dummy,
    "airflow.operators.empty": _empty,
    "airflow.operators.python": _python | _names(_DAG, "get_current_context"),
    "airflow.operators.python_operator": _python,
    "airflow.providers": {},
    _providers: {},
    f"{_providers}.operators": {},
    f"{_providers}.operators.bash": _bash,
    f"{_providers}.operators.branch": _branch_parent,
    f"{_providers}.operators.empty": _empty,
    f"{_providers}.operators.python": _python | _names(_DAG, "get_current_context"),
    f"{_providers}.triggers": {},
    f"{_providers}.triggers.external_task": _external_triggers,
    f"{_providers}.triggers.file": _file_triggers,
    f"{_providers}.triggers.temporal": _time_triggers,
    "airflow.sdk": (
        _dag
        | _decorators
        | _edges
        | _labels
        | _params
        | _stored
        | _results
        | _rules
        | _names(_DAG, "TaskInstanceState", "DagRunState")
        | _context
        | _literal
        | _operator
        | _group
    ),
    "airflow.sdk.bases": {},
    "airflow.sdk.bases.operator": _operator | _edges,
    "airflow.sdk.definitions": {},
    "airflow.sdk.definitions.context": _context,
    "airflow.sdk.definitions.dag": _dag,
    "airflow.sdk.definitions.param": _params,
    "airflow.sdk.exceptions": _exceptions,
    "airflow.sdk.timezone": _timezone,
    "airflow.triggers": {},
    "airflow.triggers.base": _triggers,
    "airflow.triggers.external_task": _external_triggers,
    "airflow.triggers.file": _file_triggers,
    "airflow.triggers.temporal": _time_triggers,
    "airflow.utils": {},
    "airflow.utils.context": _names(_DAG, "Context"),
    "airflow.utils.dates": _dates,
    "airflow.utils.decorators": _names("headrace.compat.airflow.shims", "apply_defaults"),
    "airflow.utils.edgemodifier": _labels,
    "airflow.utils.email": _names("headrace.operators.email", "send_email"),
    "airflow.utils.helpers": _names(_DAG, "chain", "cross_downstream"),
    "airflow.utils.state": _states,
    "airflow.utils.task_group": _group,
    "airflow.utils.template": _literal,
    "airflow.utils.timezone": _timezone,
    "airflow.utils.trigger_rule": _names(_DAG, "TriggerRule"),
    "airflow.utils.weight_rule": _names(_DAG, "WeightRule"),
}
