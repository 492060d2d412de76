"""`executor_config` as data: checked and turned into JSON, for the executor that it is meant for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.errors import did_you_mean

LEGACY = "KubernetesExecutor"
_LEGACY_KEYS = frozenset(
    """
    affinity annotations env_vars envs ephemeral-storage image image_pull_policy image_pull_secrets labels limit_cpu
    limit_memory namespace node_selectors request_cpu request_memory resources security_context service_account_name
    tolerations volume_mounts volumes
    """.split()
)


def executor_options(task_id: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration as JSON values; objects of the Kubernetes client become what they stand for."""
    if "pod_override" in config and LEGACY in config:
        raise ValueError(f"`executor_config` of task `{task_id}` has both `pod_override` and `{LEGACY}`: keep one")
    legacy = config.get(LEGACY, {})
    if not isinstance(legacy, Mapping):
        raise TypeError(f"expected `{LEGACY}` in `executor_config` of task `{task_id}` to be a dict, got: {legacy!r}")
    return {str(name): _plain(value) for name, value in config.items()}


def executor_warnings(task_id: str, config: Mapping[str, Any]) -> list[str]:
    """One sentence for each name in the old form that no executor knows."""
    unknown = sorted(set(config.get(LEGACY, ())) - _LEGACY_KEYS)
    hints = [(name, did_you_mean(name, _LEGACY_KEYS)) for name in unknown]
    return [
        f"`{name}` in `executor_config` of task `{task_id}` has no effect" + (f", {hint}" if hint else "")
        for name, hint in hints
    ]


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [_plain(item) for item in value]
    names = getattr(value, "attribute_map", None)
    if isinstance(names, Mapping):
        # An object of the Kubernetes client: it knows how its attributes are called in JSON.
        fields = {name: getattr(value, attribute, None) for attribute, name in names.items()}
        return {name: _plain(item) for name, item in fields.items() if item is not None}
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
