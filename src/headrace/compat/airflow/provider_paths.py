"""More of Airflow's import paths: those that its provider packages need and DAG files seldom do.

A version of Airflow stands in `shims` only if what providers import from that version is here.
"""

from __future__ import annotations

_DAG = "headrace.authoring.dag"
_HERE = "headrace.compat.airflow"


def _names(module: str, *names: str) -> dict[str, str]:
    return {name: f"{module}:{name}" for name in names}


def _renamed(module: str, **names: str) -> dict[str, str]:
    return {name: f"{module}:{own}" for name, own in names.items()}


_decorated = _names(
    f"{_HERE}.decorated",
    *("DecoratedOperator", "KeywordParameters", "determine_kwargs", "get_unique_task_id", "is_async_callable"),
    "task_decorator_factory",
)
_task_decorator = _names(f"{_DAG}.taskflow", "TaskDecorator")
_decorated_mapped = _renamed(f"{_DAG}.mapped", DecoratedMappedOperator="MappedOperator")
_unset = _renamed(f"{_DAG}.xcom_arg", ArgNotSet="Unset", NOTSET="NOTSET")
_sentinels = _names(f"{_HERE}.sentinels", "SET_DURING_EXECUTION", "SetDuringExecution", "is_arg_set")
_skipping = _names("headrace.operators.skipping", "SkipMixin")
_skip_keys = _renamed(
    "headrace.operators.skipping", XCOM_SKIPMIXIN_SKIPPED="SKIPPED", XCOM_SKIPMIXIN_FOLLOWED="FOLLOWED"
) | {"XCOM_SKIPMIXIN_KEY": "headrace.operators.branch:DECISION_KEY"}
_branching = _names("headrace.operators.skipping", "BranchMixIn") | _names(
    "headrace.operators.branch", "BaseBranchOperator"
)
_lineage = _names(
    f"{_HERE}.lineage",
    *("AssetLineageInfo", "ExtraLineageInfo", "HookLineage", "HookLineageCollector", "HookLineageReader"),
    *("LineageContext", "NoOpCollector", "get_hook_lineage_collector"),
)
_stats = _names(f"{_HERE}.statistics", "Stats", "initialize", "incr", "decr", "gauge", "timing", "timer", "Timer")
_manager = _names(f"{_HERE}.providers_manager", "ProvidersManager", "HookInfo", "ProviderInfo", "DialectInfo")
_link = _names(f"{_HERE}.operator_links", "BaseOperatorLink")
_resumable = _names(f"{_HERE}.resumable", "ResumableJobMixin")
_context = _names(f"{_HERE}.little_functions", "context_merge")
_environment = _names(f"{_HERE}.context_variables", "AIRFLOW_VAR_NAME_FORMAT_MAPPING", "context_to_airflow_vars")
_loading = _names(f"{_DAG}.configuration", "import_string") | _names(
    f"{_HERE}.little_functions", "iter_namespace", "qualname", "is_valid_dotpath"
)
_masking = _names(f"{_DAG}.masking", "mask_secret", "redact")
_logging = _names(f"{_DAG}.logging_mixin", "LoggingMixin")
_timeout = _names(f"{_HERE}.time_limit", "timeout")
_python_script = _names(f"{_HERE}.python_script", "write_python_script")
_plugin = _names(f"{_HERE}.plugin_classes", "AirflowPlugin")
_listeners = _names(f"{_HERE}.plugin_classes", "get_listener_manager", "hookimpl")
_key = _names(f"{_HERE}.task_keys", "TaskInstanceKey")
_json = _names(f"{_HERE}.xcom_json", "XComEncoder", "XComDecoder")
_storage = _names(f"{_HERE}.object_storage_path", "ObjectStoragePath")
_yaml = _names("yaml", "safe_load", "safe_dump", "load", "dump", "YAMLError", "SafeLoader", "FullLoader")

_RESOURCES = "airflow.api_fastapi.auth.managers.models.resource_details"

PROVIDER_PATHS: dict[str, dict[str, str]] = {
    "airflow.api_fastapi": {},
    "airflow.api_fastapi.auth": {},
    "airflow.api_fastapi.auth.managers": {},
    "airflow.api_fastapi.auth.managers.models": {},
    _RESOURCES: _names(f"{_HERE}.access_details", "AccessView", "AssetDetails", "AssetAliasDetails"),
    "airflow.decorators": _task_decorator,
    "airflow.decorators.base": _decorated | _task_decorator | _decorated_mapped,
    "airflow.exceptions": _names(
        f"{_DAG}.exceptions", "AirflowOptionalProviderFeatureException", "DeserializingResultError"
    ),
    "airflow.io": {},
    "airflow.io.path": _storage,
    "airflow.lineage": {},
    "airflow.lineage.hook": _lineage,
    "airflow.listeners": _listeners,
    "airflow.models.asset": _names(f"{_HERE}.access_details", "expand_alias_to_assets"),
    "airflow.models.baseoperatorlink": _link,
    "airflow.models.skipmixin": _skipping | _skip_keys,
    "airflow.models.taskinstancekey": _key,
    "airflow.observability": {},
    "airflow.observability.stats": _stats,
    "airflow.plugins_manager": _plugin,
    "airflow.providers.standard.operators.python": {"_SERIALIZERS": f"{_HERE}.python_script:SERIALIZERS"},
    "airflow.providers.standard.operators.branch": _branching,
    "airflow.providers.standard.utils.python_virtualenv": _python_script,
    "airflow.providers.standard.utils.skipmixin": _skipping | _skip_keys,
    "airflow.providers_manager": _manager,
    "airflow.sdk": _link | _resumable | _storage,
    "airflow.sdk._shared": {},
    "airflow.sdk._shared.listeners": _listeners,
    "airflow.sdk._shared.module_loading": _loading,
    "airflow.sdk._shared.observability": {},
    "airflow.sdk._shared.observability.metrics": {},
    "airflow.sdk._shared.observability.metrics.stats": _stats,
    "airflow.sdk._shared.secrets_masker": _masking,
    "airflow.sdk.bases.branch": _branching,
    "airflow.sdk.bases.decorator": _decorated | _task_decorator | _decorated_mapped,
    "airflow.sdk.bases.operator": _names(f"{_HERE}.async_operator", "BaseAsyncOperator"),
    "airflow.sdk.bases.operatorlink": _link,
    "airflow.sdk.bases.resumablejobmixin": _resumable,
    "airflow.sdk.bases.skipmixin": _skipping | _skip_keys,
    "airflow.sdk.definitions._internal": {},
    "airflow.sdk.definitions._internal.logging_mixin": _logging,
    "airflow.sdk.definitions._internal.types": _unset | _sentinels,
    "airflow.sdk.definitions.context": _context,
    "airflow.sdk.definitions.mappedoperator": _names(f"{_DAG}.mapped", "MappedOperator", "OperatorPartial"),
    "airflow.sdk.definitions.template": _names(_DAG, "literal"),
    "airflow.sdk.exceptions": _names(f"{_DAG}.exceptions", "AirflowOptionalProviderFeatureException"),
    "airflow.sdk.execution_time.context": _context | _environment,
    "airflow.sdk.execution_time.task_runner": _renamed(f"{_DAG}.task_instance", RuntimeTaskInstance="TaskInstance"),
    "airflow.sdk.execution_time.timeout": _timeout,
    "airflow.sdk.io": _storage,
    "airflow.sdk.io.path": _storage,
    "airflow.sdk.lineage": _lineage,
    "airflow.sdk.listener": _names(f"{_HERE}.plugin_classes", "get_listener_manager"),
    "airflow.sdk.module_loading": _loading,
    "airflow.sdk.observability": {},
    "airflow.sdk.observability.stats": _stats,
    "airflow.sdk.plugins_manager": _plugin,
    "airflow.sdk.providers_manager_runtime": _manager
    | _renamed(f"{_HERE}.providers_manager", ProvidersManagerTaskRuntime="ProvidersManager"),
    "airflow.sdk.types": _key | _renamed(f"{_DAG}.task_instance", RuntimeTaskInstanceProtocol="TaskInstance"),
    "airflow.sdk.yaml": _yaml,
    "airflow.settings": _names(f"{_HERE}.cluster_policies", "AIRFLOW_HOME", "pod_mutation_hook"),
    "airflow.stats": _stats,
    "airflow.utils.context": _context,
    "airflow.utils.email": _names(f"{_HERE}.mime_messages", "build_mime_message")
    | _renamed("headrace.operators.email", get_email_address_list="addresses"),
    "airflow.utils.hashlib_wrapper": _names(f"{_HERE}.little_functions", "md5"),
    "airflow.utils.helpers": _names(
        f"{_HERE}.little_functions",
        *("as_flattened_list", "at_most_one", "build_airflow_dagrun_url", "build_airflow_url_with_query", "chunks"),
        *("convert_camel_to_snake", "exactly_one", "is_container", "merge_dicts", "prune_dict", "validate_key"),
    ),
    "airflow.utils.json": _json,
    "airflow.utils.module_loading": _loading,
    "airflow.utils.operator_helpers": _environment
    | _names(f"{_HERE}.decorated", "KeywordParameters", "determine_kwargs", "make_kwargs_callable"),
    "airflow.utils.platform": _names(f"{_HERE}.little_functions", "getuser"),
    "airflow.utils.process_utils": _names(f"{_HERE}.little_functions", "patch_environ"),
    "airflow.utils.python_virtualenv": _python_script,
    "airflow.utils.session": _names(f"{_HERE}.little_functions", "provide_session", "NEW_SESSION"),
    "airflow.utils.strings": _names(f"{_HERE}.little_functions", "to_boolean"),
    "airflow.utils.timeout": _timeout,
    "airflow.utils.types": _unset | _names(f"{_HERE}.sentinels", "DagRunType"),
    "airflow.utils.yaml": _yaml,
    "airflow.version": {"version": f"{_HERE}.shims:AIRFLOW_VERSION"},
}
