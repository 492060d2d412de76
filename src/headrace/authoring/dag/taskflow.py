"""`@task`: functions as tasks. Each flavour (`@task.bash`, `@task.branch`, …) is an operator that calls a function."""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
import typing
from collections.abc import Callable, Mapping
from typing import Any

from headrace.authoring.dag import scope
from headrace.authoring.dag.conditions import run_if, skip_if
from headrace.authoring.dag.configuration import import_string, provider_infos
from headrace.authoring.dag.context import CONTEXT_KEYS
from headrace.authoring.dag.exceptions import AirflowException
from headrace.authoring.dag.group import TaskGroupFunction
from headrace.authoring.dag.mapped import OperatorPartial
from headrace.authoring.dag.xcom_arg import XComArg
from headrace.authoring.signatures import return_annotation, signature_of
from headrace.errors import did_you_mean

# Named, not imported: operators build on this room, and a file pays only for the flavours that it uses.
_FLAVOURS = {
    "python": "headrace.operators.python:PythonOperator",
    "branch": "headrace.operators.branch:BranchPythonOperator",
    "short_circuit": "headrace.operators.branch:ShortCircuitOperator",
    "bash": "headrace.operators.bash:BashFunctionOperator",
    "sensor": "headrace.operators.sensors.python:PythonSensor",
    "virtualenv": "headrace.operators.virtualenv:PythonVirtualenvOperator",
    "external_python": "headrace.operators.external_python:ExternalPythonOperator",
    "branch_virtualenv": "headrace.operators.virtualenv:BranchPythonVirtualenvOperator",
    "branch_external_python": "headrace.operators.external_python:BranchExternalPythonOperator",
}

_FLAVOURS_OF_PROVIDERS = {
    "docker": "docker",
    "sftp_sensor": "sftp",
    "kubernetes": "cncf-kubernetes",
    "kubernetes_cmd": "cncf-kubernetes",
    "pyspark": "apache-spark",
    "sql": "common-sql",
    "snowpark": "snowflake",
    "llm": "common-ai",
    "agent": "common-ai",
}

_SCOPE_NAMES = ("dag", "task_group", "default_args")


class TaskFunction:
    """A function that makes a task each time it is called inside a DAG."""

    def __init__(self, function: Callable[..., Any], operator_class: Any, options: dict[str, Any]) -> None:
        self.function = function
        self.operator_class = operator_class
        self.options = options
        self.is_setup = False
        self.is_teardown = False
        self.on_failure_fail_dagrun = False
        self.signature = _signature(function)
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> XComArg:
        """Make a task; its arguments may be results of other tasks."""
        kwargs = self._with_defaults(args, kwargs)
        self._bind(args, kwargs)
        operator = self.operator_class(
            **self._operator_options(), python_callable=self.function, op_args=list(args), op_kwargs=kwargs
        )
        return self._marked(XComArg(operator))

    def override(self, **options: Any) -> TaskFunction:
        """The same function with other operator arguments."""
        copy = type(self)(self.function, self.operator_class, {**self.options, **options})
        copy.is_setup, copy.is_teardown = self.is_setup, self.is_teardown
        copy.on_failure_fail_dagrun = self.on_failure_fail_dagrun
        return copy

    def partial(self, **kwargs: Any) -> TaskFunctionPartial:
        """Fix some of the function's arguments, to map over others."""
        self._check_names(kwargs)
        return TaskFunctionPartial(self, kwargs)

    def expand(self, **mapped: Any) -> XComArg:
        """A mapped task: one instance for every combination of the arguments' elements."""
        return self.partial().expand(**mapped)

    def expand_kwargs(self, kwargs: Any, *, strict: bool = True) -> XComArg:
        """A mapped task: one instance for every set of arguments."""
        return self.partial().expand_kwargs(kwargs, strict=strict)

    def make_partial(self, kwargs: dict[str, Any], mapped: frozenset[str]) -> OperatorPartial:
        """The operator of a mapped task before it is mapped."""
        filled = {name: value for name, value in self._with_defaults((), kwargs).items() if name not in mapped}
        options = self._operator_options()
        defaults = scope.defaults_for(*(options.get(name) for name in _SCOPE_NAMES))
        task_id = options.pop("task_id")
        options.pop("default_args", None)
        options |= {"python_callable": self.function, "op_kwargs": {**filled, **kwargs}}
        partial: OperatorPartial = self.operator_class.partial_of(task_id, options, defaults, into="op_kwargs")
        return partial

    def check_mapped(self, names: frozenset[str], given: Mapping[str, Any], strict: bool) -> None:
        """TypeError if the function cannot be mapped over these arguments."""
        self._check_names(dict.fromkeys(names))
        for name in sorted(names & given.keys()):
            if strict:
                raise TypeError(f"task function `{self._name}` got `{name}` both in partial() and as a mapped argument")

    def _marked(self, result: XComArg) -> XComArg:
        if self.is_setup:
            result.as_setup()
        if self.is_teardown:
            result.as_teardown(on_failure_fail_dagrun=self.on_failure_fail_dagrun)
        return result

    @property
    def _name(self) -> str:
        name: str = getattr(self.function, "__name__", type(self.function).__name__)
        return name

    @functools.cached_property
    def _doc(self) -> str | None:
        return inspect.getdoc(self.function)

    @functools.cached_property
    def _has_multiple_outputs(self) -> bool:
        return _returns_dict(self.function)

    def _operator_options(self) -> dict[str, Any]:
        options = dict(self.options)
        dag, group = scope.home_of(options.get("dag"), options.get("task_group"))
        label = options.get("task_id") or self._name
        if dag is not None:
            # Calling a function twice is no mistake, so the second task gets a number.
            label = dag.ids.free_variant(group.child_id(label)).removeprefix(group.child_prefix)
        options["task_id"] = label
        if not any(options.get(name) for name in ("doc", "doc_md", "doc_json", "doc_yaml", "doc_rst")):
            options["doc_md"] = self._doc
        if options.get("multiple_outputs") is None:
            options["multiple_outputs"] = self._has_multiple_outputs
        return options

    def _with_defaults(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Default arguments also fill function parameters of the same name."""
        defaults = scope.defaults_for(*(self.options.get(name) for name in _SCOPE_NAMES))
        free = list(self.signature.parameters)[len(args) :]
        return {name: defaults[name] for name in free if name in defaults} | kwargs

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        try:
            self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"task function `{self._name}`: {error}") from None

    def _check_names(self, kwargs: Mapping[str, Any]) -> None:
        parameters = self.signature.parameters
        if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
            return
        for name in sorted(kwargs.keys() - parameters.keys()):
            hint = did_you_mean(name, parameters)
            raise TypeError(f"task function `{self._name}` has no argument `{name}`" + (f", {hint}" if hint else ""))


class TaskFunctionPartial:
    """A task function with some of its arguments, waiting for the mapped ones."""

    def __init__(self, task: TaskFunction, kwargs: dict[str, Any]) -> None:
        self._task = task
        self._kwargs = kwargs

    def partial(self, **kwargs: Any) -> TaskFunctionPartial:
        return self._task.partial(**self._kwargs, **kwargs)

    def expand(self, **mapped: Any) -> XComArg:
        self._task.check_mapped(frozenset(mapped), self._kwargs, strict=True)
        partial = self._task.make_partial(self._kwargs, frozenset(mapped))
        return self._task._marked(partial.expand(**mapped).output)

    def expand_kwargs(self, kwargs: Any, *, strict: bool = True) -> XComArg:
        partial = self._task.make_partial(self._kwargs, frozenset())
        return self._task._marked(partial.expand_kwargs(kwargs, strict=strict).output)


class TaskDecorator:
    """`@task` and its flavours."""

    def __init__(self, flavour: str = "python", dag: Any = None) -> None:
        self._flavour = flavour
        self._dag = dag

    def __call__(self, python_callable: Any = None, **options: Any) -> Any:
        """Usable bare (`@task`) and with operator arguments (`@task(retries=2)`)."""
        if self._dag is not None:
            options.setdefault("dag", self._dag)
        operator_class = _operator_class(self._flavour)
        if python_callable is not None:
            if not callable(python_callable) or isinstance(python_callable, type):
                raise TypeError("@task takes keyword arguments only")
            return TaskFunction(python_callable, operator_class, options)
        return lambda function: TaskFunction(function, operator_class, options)

    run_if = staticmethod(run_if)
    skip_if = staticmethod(skip_if)

    def __getattr__(self, name: str) -> Any:
        if name in _FLAVOURS:
            return TaskDecorator(name, self._dag)
        # Python itself asks for names that begin so, of which no provider has any.
        provided = None if name.startswith("_") else _provided_flavours(tuple(sys.path)).get(name)
        if provided is None:
            raise AttributeError(_unknown_flavour(name))
        decorator = import_string(provided)
        return decorator if self._dag is None else functools.partial(decorator, dag=self._dag)


@functools.cache
def _provided_flavours(path: tuple[str, ...]) -> dict[str, str]:
    """What the providers that are installed on this path add to `@task`: name → path of the decorator."""
    decorators = (one for info in provider_infos() for one in info.get("task-decorators") or ())
    return {one["name"]: one["class-name"] for one in decorators}


def _unknown_flavour(name: str) -> str:
    if name in _FLAVOURS_OF_PROVIDERS:
        package = _FLAVOURS_OF_PROVIDERS[name]
        return (
            f"`@task.{name}` comes with Airflow's provider `{package}`, which is not installed;"
            f" `headrace providers install {package}` brings it"
        )
    hint = did_you_mean(name, [*_FLAVOURS, "run_if", "skip_if"])
    return f"there is no `@task.{name}`" + (f", {hint}" if hint else "")


task = TaskDecorator()


def setup(function: Any) -> Any:
    """Mark a task function as one that prepares what others need: `@setup` above a function or above `@task`."""
    prepared = _task_function(function)
    prepared.is_setup = True
    return prepared


def teardown(function: Any = None, *, on_failure_fail_dagrun: bool = False) -> Any:
    """Mark a task function as one that cleans up, whatever happened before it."""
    if function is None:
        return functools.partial(teardown, on_failure_fail_dagrun=on_failure_fail_dagrun)
    prepared = _task_function(function)
    prepared.is_teardown = True
    prepared.on_failure_fail_dagrun = on_failure_fail_dagrun
    return prepared


def _task_function(function: Any) -> Any:
    if isinstance(function, TaskGroupFunction):
        raise AirflowException(
            f"task group `{function.function.__name__}` cannot be a setup or a teardown, only tasks can"
        )
    return function if isinstance(function, TaskFunction) else task(function)


def _operator_class(flavour: str) -> Any:
    module_name, class_name = _FLAVOURS[flavour].split(":")
    return getattr(importlib.import_module(module_name), class_name)


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    """The function's signature, in which everything that the context provides is optional."""
    signature = signature_of(function)
    parameters = list(signature.parameters.values())
    if parameters and parameters[0].name == "self":
        raise TypeError(f"@task takes plain functions, `{function.__name__}` is a method")
    relaxed: list[inspect.Parameter] = []
    has_default = False
    for parameter in parameters:
        if parameter.name in CONTEXT_KEYS:
            if parameter.default not in (None, inspect.Parameter.empty):
                raise ValueError(
                    f"argument `{parameter.name}` of task function `{function.__name__}` is filled from the context,"
                    f" so its default must be None, got: {parameter.default!r}"
                )
            if parameter.kind not in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
                parameter = parameter.replace(default=None)
        elif has_default and parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD:
            # `def f(ds, x)`: once `ds` is optional, Python wants a default for `x`, so `x` goes by name only.
            if parameter.default is inspect.Parameter.empty:
                parameter = parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        has_default = has_default or parameter.default is not inspect.Parameter.empty
        relaxed.append(parameter)
    return signature.replace(parameters=_in_legal_order(relaxed))


def _in_legal_order(parameters: list[inspect.Parameter]) -> list[inspect.Parameter]:
    return sorted(parameters, key=lambda parameter: parameter.kind)


def _returns_dict(function: Callable[..., Any]) -> bool:
    """Whether the return annotation says so: `dict`, `Mapping`, a TypedDict."""
    annotation = return_annotation(function)
    try:
        # Only this one: other annotations may name things that are imported for type checkers alone.
        if isinstance(annotation, str):
            annotation = eval(annotation, getattr(function, "__globals__", {}))
    except Exception:  # an annotation that cannot be evaluated is no reason to refuse the function
        return False
    kind = typing.get_origin(annotation) or annotation
    return isinstance(kind, type) and issubclass(kind, Mapping)
