"""The one table of Airflow's import paths: module → name → where the object lives here (`module:name`).

Old and new spellings of one thing lead to the same object. Objects are imported when a file asks for them.
"""

from __future__ import annotations

from headrace.compat.airflow.provider_paths import PROVIDER_PATHS

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
_hook = _names(f"{_DAG}.hooks", "BaseHook")
_conf = _names(f"{_DAG}.configuration", "conf")
_masking = _names(f"{_DAG}.masking", "mask_secret", "redact")
_backend = _names(f"{_DAG}.secrets_backends", "BaseSecretsBackend")
_logging = _names(f"{_DAG}.logging_mixin", "LoggingMixin")
_xcom = _names(f"{_DAG}.xcom", "XCom", "BaseXCom")
_results = _names(_DAG, "XComArg")
_rules = _names(_DAG, "TriggerRule", "WeightRule")
_states = _names(_DAG, "State", "TaskInstanceState", "DagRunState")
_context = _names(_DAG, "get_current_context", "Context")
_literal = _names(_DAG, "literal")
_operator = _names(_DAG, "BaseOperator")
_group = _names(_DAG, "TaskGroup")
_bag = _names("headrace.testing.dag_bag", "DagBag")
_parsing = _names(f"{_DAG}.parsing_context", "get_parsing_context")
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
    *("DownstreamTasksSkipped", "DagRunTriggerException"),
    *("XComForMappingNotPushed", "UnmappableXComTypePushed", "UnmappableXComLengthPushed", "SerializationError"),
    *("RemovedInAirflow3Warning", "RemovedInAirflow4Warning", "AirflowProviderDeprecationWarning"),
)
_branch = _names("headrace.operators.branch", "BranchPythonOperator", "ShortCircuitOperator")
_branch_parent = _names("headrace.operators.branch", "BaseBranchOperator")
_python = _names("headrace.operators.python", "PythonOperator") | _branch
_bash = _names("headrace.operators.bash", "BashOperator")
_empty = _names("headrace.operators.empty", "EmptyOperator")
_smooth = _names("headrace.operators.smooth", "SmoothOperator")
_outside_python = _names(
    "headrace.operators.external_python", "ExternalPythonOperator", "BranchExternalPythonOperator"
) | _names("headrace.operators.virtualenv", "PythonVirtualenvOperator", "BranchPythonVirtualenvOperator")
_branch_by_date = _names("headrace.operators.branch_by_time", "BranchDateTimeOperator")
_branch_by_day = _names("headrace.operators.branch_by_time", "BranchDayOfWeekOperator")
_latest_only = _names("headrace.operators.branch_by_time", "LatestOnlyOperator")
_trigger_dag_run = _names("headrace.operators.trigger_dag_run", "TriggerDagRunOperator", "DagIsPaused")
_email = _names("headrace.operators.email_operator", "EmailOperator")
_HITL = "headrace.operators.hitl"
_asking = _names(_HITL, "HITLOperator", "ApprovalOperator", "HITLBranchOperator", "HITLEntryOperator")
_asking_errors = _names(_HITL, "HITLTriggerEventError", "HITLTimeoutError", "HITLRejectException")
_week_day = _names("headrace.operators.week_day", "WeekDay")
_SENSORS = "headrace.operators.sensors"
_sensor = _names(f"{_SENSORS}.poking", "BaseSensorOperator", "PokeReturnValue")
_sensor_tools = _sensor | _names(f"{_SENSORS}.poking", "poke_mode_only")
_python_sensor = _names(f"{_SENSORS}.python", "PythonSensor")
_bash_sensor = _names(f"{_SENSORS}.bash", "BashSensor")
_file_sensor = _names(f"{_SENSORS}.file", "FileSensor")
_date_time_sensors = _names(f"{_SENSORS}.moments", "DateTimeSensor", "DateTimeSensorAsync")
_time_sensors = _names(f"{_SENSORS}.moments", "TimeSensor", "TimeSensorAsync")
_time_delta_sensors = _names(f"{_SENSORS}.moments", "TimeDeltaSensor", "TimeDeltaSensorAsync", "WaitSensor")
_week_day_sensor = _names(f"{_SENSORS}.moments", "DayOfWeekSensor")
_external_task = _names(f"{_SENSORS}.external_task", "ExternalTaskSensor", "ExternalTaskMarker")
_external_errors = _names(
    f"{_SENSORS}.external_task",
    *("AirflowExternalTaskSensorException", "DuplicateStateError", "ExternalDagNotFoundError"),
    *("ExternalDagDeletedError", "ExternalDagFailedError", "ExternalTaskNotFoundError", "ExternalTaskFailedError"),
    *("ExternalTaskGroupNotFoundError", "ExternalTaskGroupFailedError"),
)
_dummy = {"DummyOperator": _empty["EmptyOperator"]}
_triggers = _names(
    f"{_DAG}.triggers",
    *("BaseTrigger", "BaseEventTrigger", "TriggerEvent", "BaseTaskEndEvent", "TaskSuccessEvent", "TaskFailedEvent"),
    *("TaskSkippedEvent", "StartTriggerArgs"),
)
_external_triggers = _names("headrace.operators.triggers", "WorkflowTrigger", "DagStateTrigger", "ExternalTaskTrigger")
_file_triggers = _names("headrace.operators.triggers", "FileTrigger", "FileDeleteTrigger", "DirectoryFileDeleteTrigger")
_time_triggers = _names("headrace.operators.triggers", "DateTimeTrigger", "TimeDeltaTrigger")
_assets = _names(
    f"{_DAG}.assets",
    *(
        "Asset",
        "AssetAlias",
        "AssetAll",
        "AssetAny",
        "AssetAccessControl",
        "AssetWatcher",
        "Dataset",
        "Model",
        "BaseAsset",
        "AssetRef",
    ),
    *("AssetNameRef", "AssetUriRef"),
)
_metadata = _names(f"{_DAG}.assets", "Metadata")
_datasets = {
    "Dataset": f"{_DAG}.assets:Dataset",
    "DatasetAlias": f"{_DAG}.assets:AssetAlias",
    "DatasetAll": f"{_DAG}.assets:AssetAll",
    "DatasetAny": f"{_DAG}.assets:AssetAny",
}
_asset_decorator = _names("headrace.operators.asset", "asset")
_asset_timetables = _names(
    f"{_DAG}.asset_timetables", "AssetOrTimeSchedule", "DatasetOrTimeSchedule", "AssetTriggeredTimetable"
)
_timetable_parts = _names(f"{_DAG}.timetables", "Timetable", "DagRunInfo", "DataInterval", "TimeRestriction")
_trigger_timetables = _names(
    f"{_DAG}.timetables", "CronTriggerTimetable", "DeltaTriggerTimetable", "MultipleCronTriggerTimetable"
)
_interval_timetables = _names(f"{_DAG}.timetables", "CronDataIntervalTimetable", "DeltaDataIntervalTimetable")
_events_timetable = _names(f"{_DAG}.timetables", "EventsTimetable")
_simple_timetables = _names(f"{_DAG}.timetables", "NullTimetable", "OnceTimetable", "ContinuousTimetable")
_partition_timetables = _names(
    f"{_DAG}.partition_timetables", "CronPartitionTimetable", "PartitionedAssetTimetable", "PartitionedAtRuntime"
)
_MAPPERS, _WINDOWS = f"{_DAG}.partition_mappers", f"{_DAG}.partition_windows"
_mappers = _names(_MAPPERS, "PartitionMapper", "RollupMapper")
_identity_mapper = _names(_MAPPERS, "IdentityMapper")
_fixed_key_mapper = _names(_MAPPERS, "FixedKeyMapper")
_allowed_key_mapper = _names(_MAPPERS, "AllowedKeyMapper")
_product_mapper = _names(_MAPPERS, "ProductMapper")
_chain_mapper = _names(_MAPPERS, "ChainMapper")
_temporal_mappers = _names(
    _MAPPERS,
    *("StartOfHourMapper", "StartOfDayMapper", "StartOfWeekMapper", "StartOfMonthMapper", "StartOfQuarterMapper"),
    *("StartOfYearMapper", "FanOutMapper"),
)
_windows = _names(
    _WINDOWS,
    *("Window", "HourWindow", "DayWindow", "WeekWindow", "MonthWindow", "QuarterWindow", "YearWindow", "SegmentWindow"),
)
_wait_policies = _names(_WINDOWS, "WaitPolicy", "WaitForAll", "MinimumCount")
_partition_modules = {
    "base": _mappers,
    "identity": _identity_mapper,
    "fixed_key": _fixed_key_mapper,
    "allowed_key": _allowed_key_mapper,
    "product": _product_mapper,
    "chain": _chain_mapper,
    "temporal": _temporal_mappers,
    "window": _windows,
    "wait_policy": _wait_policies,
}
_partitions = {name: path for names in _partition_modules.values() for name, path in names.items()}
_version = {"__version__": "headrace.compat.airflow.shims:AIRFLOW_VERSION"}

_notifier = _names(f"{_DAG}.notifier", "BaseNotifier")
_retries = _names(
    f"{_DAG}.retry_policy", "RetryPolicy", "ExceptionRetryPolicy", "RetryRule", "RetryAction", "RetryDecision"
)

_never_expire = _names(f"{_DAG}.state_stores", "NEVER_EXPIRE")

_deadlines = _names(
    f"{_DAG}.deadlines",
    *("DeadlineAlert", "DeadlineReference", "AsyncCallback", "SyncCallback", "VariableInterval", "deadline_reference"),
    "BaseDeadlineReference",
)

_providers = "airflow.providers.standard"

PATHS: dict[str, dict[str, str]] = {
    "airflow": _version | {"Dataset": f"{_DAG}.assets:Dataset"} | _names(_DAG, "DAG", "XComArg"),
    "airflow.datasets": _datasets,
    "airflow.datasets.metadata": _metadata,
    "airflow.decorators": _decorators,
    "airflow.decorators.base": {},
    "airflow.decorators.python": {},
    "airflow.decorators.task_group": _names(_DAG, "task_group"),
    "airflow.configuration": _conf | _names(f"{_DAG}.exceptions", "AirflowConfigException"),
    "airflow.hooks": {},
    "airflow.hooks.base": _hook,
    "airflow.hooks.base_hook": _hook,
    "airflow.secrets": _backend,
    "airflow.secrets.base_secrets": _backend,
    "airflow.secrets.environment_variables": _names(f"{_DAG}.secrets_backends", "EnvironmentVariablesBackend"),
    "airflow.secrets.local_filesystem": _names(f"{_DAG}.secrets_backends", "LocalFilesystemBackend"),
    "airflow.example_dags": {},
    "airflow.exceptions": _exceptions,
    "airflow.models": (
        _names(_DAG, "DAG")
        | _operator
        | _params
        | _stored
        | _results
        | _run
        | _mapped
        | _bag
        | _names(f"{_DAG}.xcom", "XCom")
    ),
    "airflow.models.abstractoperator": {},
    "airflow.models.baseoperator": _operator | _edges,
    "airflow.models.connection": _names(_DAG, "Connection"),
    "airflow.models.dag": _dag,
    "airflow.models.dagbag": _bag,
    "airflow.models.dagrun": _names(f"{_DAG}.task_instance", "DagRun"),
    "airflow.models.mappedoperator": _mapped,
    "airflow.models.param": _params | _param_references,
    "airflow.models.slamiss": _names(f"{_DAG}.sla_miss", "SlaMiss"),
    "airflow.models.taskinstance": _names(f"{_DAG}.task_instance", "TaskInstance"),
    "airflow.models.variable": _names(_DAG, "Variable"),
    "airflow.models.xcom": _xcom | {"XCOM_RETURN_KEY": f"{_DAG}.xcom_arg:RETURN_VALUE"},
    "airflow.models.xcom_arg": _results,
    "airflow.notifications": {},
    "airflow.notifications.basenotifier": _notifier,
    "airflow.operators": {},
    "airflow.operators.bash": _bash,
    "airflow.operators.bash_operator": _bash,
    "airflow.operators.branch": _branch_parent,
    "airflow.operators.branch_operator": _branch_parent,
    "airflow.operators.dummy": _dummy,
    "airflow.operators.dummy_operator": _dummy,
    "airflow.operators.empty": _empty,
    "airflow.operators.dagrun_operator": _trigger_dag_run,
    "airflow.operators.datetime": _branch_by_date,
    "airflow.operators.email": _email,
    "airflow.operators.email_operator": _email,
    "airflow.operators.latest_only": _latest_only,
    "airflow.operators.latest_only_operator": _latest_only,
    "airflow.operators.python": _python | _outside_python | _names(_DAG, "get_current_context", "task"),
    "airflow.operators.python_operator": _python | _outside_python,
    "airflow.operators.smooth": _smooth,
    "airflow.operators.trigger_dagrun": _trigger_dag_run,
    "airflow.operators.weekday": _branch_by_day,
    "airflow.providers": {},
    _providers: {},
    f"{_providers}.operators": {},
    f"{_providers}.operators.bash": _bash,
    f"{_providers}.operators.branch": _branch_parent,
    f"{_providers}.operators.empty": _empty,
    f"{_providers}.operators.datetime": _branch_by_date,
    f"{_providers}.operators.hitl": _asking,
    f"{_providers}.operators.latest_only": _latest_only,
    f"{_providers}.operators.python": _python | _outside_python | _names(_DAG, "get_current_context"),
    f"{_providers}.operators.smooth": _smooth,
    f"{_providers}.operators.trigger_dagrun": _trigger_dag_run,
    f"{_providers}.operators.weekday": _branch_by_day,
    f"{_providers}.exceptions": _external_errors | _asking_errors,
    f"{_providers}.sensors": {},
    f"{_providers}.sensors.bash": _bash_sensor,
    f"{_providers}.sensors.date_time": _date_time_sensors,
    f"{_providers}.sensors.external_task": _external_task | _external_errors,
    f"{_providers}.sensors.filesystem": _file_sensor,
    f"{_providers}.sensors.python": _python_sensor,
    f"{_providers}.sensors.time": _time_sensors,
    f"{_providers}.sensors.time_delta": _time_delta_sensors,
    f"{_providers}.sensors.weekday": _week_day_sensor,
    f"{_providers}.utils": {},
    f"{_providers}.utils.weekday": _week_day,
    "airflow.providers.smtp": {},
    "airflow.providers.smtp.operators": {},
    "airflow.providers.smtp.operators.smtp": _email,
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
        | _sensor
        | _group
        | _notifier
        | _retries
        | _parsing
        | _hook
        | _names(f"{_DAG}.xcom", "BaseXCom", "XCom")
        | _assets
        | _metadata
        | _asset_decorator
        | _names(f"{_DAG}.asset_timetables", "AssetOrTimeSchedule")
        | _trigger_timetables
        | _interval_timetables
        | _events_timetable
        | _deadlines
        | _never_expire
        | _partitions
        | _partition_timetables
    ),
    "airflow.sdk.bases": {},
    "airflow.sdk.bases.hook": _hook,
    "airflow.sdk.bases.notifier": _notifier,
    "airflow.sdk.bases.xcom": _names(f"{_DAG}.xcom", "BaseXCom"),
    "airflow.sdk.configuration": _conf,
    "airflow.sdk.definitions.connection": _names(_DAG, "Connection"),
    "airflow.sdk.definitions.variable": _names(_DAG, "Variable"),
    "airflow.sdk.execution_time": {},
    "airflow.sdk.execution_time.context": _never_expire,
    "airflow.sdk.execution_time.hitl": _names(_HITL, "HITLUser"),
    "airflow.sdk.execution_time.secrets_masker": _masking,
    "airflow.sdk.execution_time.xcom": _names(f"{_DAG}.xcom", "XCom"),
    "airflow.sdk.log": _masking,
    "airflow.sdk.bases.operator": _operator | _edges,
    "airflow.sdk.bases.sensor": _sensor_tools,
    "airflow.sdk.definitions": {},
    "airflow.sdk.definitions.asset": _assets,
    "airflow.sdk.definitions.asset.decorators": _asset_decorator,
    "airflow.sdk.definitions.asset.metadata": _metadata,
    "airflow.sdk.definitions.context": _context,
    "airflow.sdk.definitions.callback": _names(f"{_DAG}.deadlines", "Callback", "AsyncCallback", "SyncCallback"),
    "airflow.sdk.definitions.dag": _dag,
    "airflow.sdk.definitions.deadline": _deadlines,
    "airflow.sdk.definitions.param": _params,
    "airflow.sdk.definitions.retry_policy": _retries,
    "airflow.sdk.definitions.taskgroup": _group,
    "airflow.sdk.definitions.xcom_arg": _results,
    "airflow.sdk.exceptions": _exceptions,
    "airflow.sdk.timezone": _timezone,
    "airflow.triggers": {},
    "airflow.triggers.base": _triggers,
    "airflow.triggers.external_task": _external_triggers,
    "airflow.triggers.file": _file_triggers,
    "airflow.triggers.temporal": _time_triggers,
    "airflow.sensors": {},
    "airflow.sensors.base": _sensor_tools,
    "airflow.sensors.base_sensor_operator": _sensor,
    "airflow.sensors.bash": _bash_sensor,
    "airflow.sensors.date_time": _date_time_sensors,
    "airflow.sensors.date_time_sensor": _date_time_sensors,
    "airflow.sensors.external_task": _external_task | _external_errors,
    "airflow.sensors.external_task_sensor": _external_task,
    "airflow.sensors.filesystem": _file_sensor,
    "airflow.sensors.python": _python_sensor,
    "airflow.sensors.time_delta": _time_delta_sensors,
    "airflow.sensors.time_delta_sensor": _time_delta_sensors,
    "airflow.sensors.time_sensor": _time_sensors,
    "airflow.sensors.weekday": _week_day_sensor,
    "airflow.task": {},
    "airflow.task.priority_strategy": _names(f"{_DAG}.weights", "PriorityWeightStrategy"),
    "airflow.timetables": {},
    "airflow.timetables.assets": _asset_timetables,
    "airflow.timetables.base": _timetable_parts,
    "airflow.timetables.datasets": _asset_timetables,
    "airflow.timetables.events": _events_timetable,
    "airflow.timetables.interval": _interval_timetables,
    "airflow.timetables.simple": _simple_timetables | _partition_timetables,
    "airflow.timetables.trigger": _trigger_timetables | _partition_timetables,
    "airflow.partition_mappers": _partitions,
    "airflow.sdk.definitions.partition_mappers": _partitions,
    "airflow.utils": {},
    "airflow.utils.context": _names(_DAG, "Context"),
    "airflow.utils.dag_parsing_context": _parsing,
    "airflow.utils.dates": _dates,
    "airflow.utils.decorators": _names("headrace.compat.airflow.shims", "apply_defaults"),
    "airflow.utils.edgemodifier": _labels,
    "airflow.utils.email": _names("headrace.operators.email", "send_email"),
    "airflow.utils.log": {},
    "airflow.utils.log.logging_mixin": _logging,
    "airflow.utils.log.secrets_masker": _masking,
    "airflow.utils.module_loading": _names(f"{_DAG}.configuration", "import_string"),
    "airflow.utils.helpers": _names(_DAG, "chain", "cross_downstream"),
    "airflow.utils.state": _states,
    "airflow.utils.task_group": _group,
    "airflow.utils.template": _literal,
    "airflow.utils.timezone": _timezone,
    "airflow.utils.trigger_rule": _names(_DAG, "TriggerRule"),
    "airflow.utils.weekday": _week_day,
    "airflow.utils.weight_rule": _names(_DAG, "WeightRule"),
}

# The one path by which newer providers, and the examples that come with them, ask for everything else.
PATHS |= {
    "airflow.providers.common": {},
    "airflow.providers.common.compat": {},
    "airflow.providers.common.compat.sdk": PATHS["airflow.sdk"] | _exceptions | _conf | _branch_parent,
    "airflow.providers.common.compat.sdk.timezone": _timezone,
}

for _name, _of_module in _partition_modules.items():
    PATHS[f"airflow.partition_mappers.{_name}"] = _of_module
    PATHS[f"airflow.sdk.definitions.partition_mappers.{_name}"] = _of_module

for _path, _more in PROVIDER_PATHS.items():
    PATHS[_path] = _more | PATHS.get(_path, {})
