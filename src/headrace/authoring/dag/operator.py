"""The operator: one task of a DAG, with every argument that all tasks have."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar, NoReturn

from headrace.authoring.dag import installation_defaults, scope
from headrace.authoring.dag.arguments import accepted_names, with_defaults
from headrace.authoring.dag.context import Context
from headrace.authoring.dag.exceptions import TaskDeferralError, TaskDeferralTimeout, TaskDeferred
from headrace.authoring.dag.mapped import OperatorPartial
from headrace.authoring.dag.naming import check_id
from headrace.authoring.dag.node import Callback, TaskNode, callbacks, written_at
from headrace.authoring.dag.params import ParamsDict
from headrace.authoring.dag.rules import WeightRule, trigger_rule_of
from headrace.authoring.dag.triggers import BaseTrigger, StartTriggerArgs
from headrace.authoring.dag.weights import weight_rule_of
from headrace.authoring.dag.xcom_arg import XComArg, references_in
from headrace.errors import did_you_mean

DEFAULT_RETRY_DELAY = installation_defaults.RETRY_DELAY
TRIGGER_FAILED = "__fail__"
"""In place of a method to go on with: the trigger has failed, and so does the task."""
TRIGGER_TIMED_OUT = "Trigger timeout"
# Named, not imported: files are loaded without ever rendering anything.
_RENDERING = "headrace.runner.rendering"
DEFAULT_OWNER = installation_defaults.OWNER
_INT32 = 2**31 - 1


class BaseOperator(TaskNode):
    """One task. Subclasses say in `execute` what it does and in `template_fields` which arguments are rendered."""

    template_fields: Sequence[str] = ()
    template_ext: Sequence[str] = ()
    template_fields_renderers: ClassVar[dict[str, str]] = {}
    operator_extra_links: Collection[Any] = ()
    ui_color = "#fff"
    ui_fgcolor = "#000"
    start_from_trigger: bool = False
    """Whether the task waits for the trigger of `start_trigger_args` before any code of it runs."""
    start_trigger_args: StartTriggerArgs | None = None

    operator_name: ClassVar[str] = ""
    """What the engine calls this operator; a class that says nothing goes by its own name."""
    shown_fields: ClassVar[Sequence[str]] = ()
    """The arguments that are shown with the task; they must be JSON values."""
    _default_args: dict[str, Any]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__init__" in cls.__dict__:
            cls.__init__ = with_defaults(cls.__dict__["__init__"])  # type: ignore[method-assign]

    @with_defaults
    def __init__(
        self,
        *,
        task_id: str,
        task_display_name: str | None = None,
        owner: str = DEFAULT_OWNER,
        email: str | Iterable[str] | None = None,
        email_on_retry: bool = True,
        email_on_failure: bool = True,
        retries: int | None = installation_defaults.RETRIES,
        retry_delay: timedelta | float = DEFAULT_RETRY_DELAY,
        retry_exponential_backoff: bool | float = False,
        max_retry_delay: timedelta | float | None = None,
        retry_policy: Any = None,
        start_date: datetime | None = None,
        end_date: datetime | None = None,
        depends_on_past: bool = False,
        ignore_first_depends_on_past: bool = True,
        wait_for_past_depends_before_skipping: bool = False,
        wait_for_downstream: bool = False,
        dag: Any = None,
        task_group: Any = None,
        params: Mapping[str, Any] | None = None,
        default_args: Mapping[str, Any] | None = None,
        priority_weight: int = 1,
        weight_rule: Any = WeightRule.DOWNSTREAM,
        queue: str = installation_defaults.QUEUE,
        pool: str | None = None,
        pool_slots: int = 1,
        sla: timedelta | None = None,
        execution_timeout: timedelta | None = None,
        on_execute_callback: Callback | list[Callback] | None = None,
        on_failure_callback: Callback | list[Callback] | None = None,
        on_success_callback: Callback | list[Callback] | None = None,
        on_retry_callback: Callback | list[Callback] | None = None,
        on_skipped_callback: Callback | list[Callback] | None = None,
        pre_execute: Callable[[Any], None] | None = None,
        post_execute: Callable[[Any, Any], None] | None = None,
        trigger_rule: str = "all_success",
        resources: Mapping[str, Any] | None = None,
        run_as_user: str | None = None,
        map_index_template: str | None = None,
        max_active_tis_per_dag: int | None = None,
        max_active_tis_per_dagrun: int | None = None,
        task_concurrency: int | None = None,
        executor: str | None = None,
        executor_config: Mapping[str, Any] | None = None,
        do_xcom_push: bool = True,
        multiple_outputs: bool = False,
        inlets: Any = None,
        outlets: Any = None,
        doc: str | None = None,
        doc_md: str | None = None,
        doc_json: str | None = None,
        doc_yaml: str | None = None,
        doc_rst: str | None = None,
        logger_name: str | None = None,
        allow_nested_operators: bool = True,
        render_template_as_native_obj: bool | None = None,
        isolation: str | None = None,
        **unknown: Any,
    ) -> None:
        if unknown:
            self._refuse(unknown, task_id)
        self.place = written_at()
        dag, group = scope.home_of(dag, task_group)
        self.task_id = check_id("task id", task_id if group is None else group.child_id(task_id))
        self.task_display_name = task_display_name or self.task_id
        self.owner = owner
        self.email = email
        self.email_on_retry = email_on_retry
        self.email_on_failure = email_on_failure
        self.retries = self._whole("retries", retries or 0)
        self.retry_delay = self._duration("retry_delay", retry_delay)
        self.retry_exponential_backoff = retry_exponential_backoff
        self.max_retry_delay = None if max_retry_delay is None else self._duration("max_retry_delay", max_retry_delay)
        self.retry_policy = retry_policy
        self.start_date = start_date
        self.end_date = end_date
        self.depends_on_past = depends_on_past or wait_for_downstream
        self.ignore_first_depends_on_past = ignore_first_depends_on_past
        self.wait_for_past_depends_before_skipping = wait_for_past_depends_before_skipping
        self.wait_for_downstream = wait_for_downstream
        self.params = ParamsDict(params)
        self.params.update(self._default_args.get("params") or {})
        self.priority_weight = max(-_INT32 - 1, min(_INT32, self._whole("priority_weight", priority_weight)))
        self.weight_rule = weight_rule_of(weight_rule)
        self.queue = queue
        self.pool = pool or "default_pool"
        self.pool_slots = self._at_least_one("pool_slots", pool_slots)
        self.sla = sla
        self.execution_timeout = self._timedelta_or_none("execution_timeout", execution_timeout)
        self.on_execute_callback = callbacks(on_execute_callback)
        self.on_failure_callback = callbacks(on_failure_callback)
        self.on_success_callback = callbacks(on_success_callback)
        self.on_retry_callback = callbacks(on_retry_callback)
        self.on_skipped_callback = callbacks(on_skipped_callback)
        self.pre_execute_hook = pre_execute
        self.post_execute_hook = post_execute
        self.trigger_rule = trigger_rule_of(trigger_rule)
        self.resources = resources
        self.run_as_user = run_as_user
        self.map_index_template = map_index_template
        self.max_active_tis_per_dag = max_active_tis_per_dag or task_concurrency
        self.max_active_tis_per_dagrun = max_active_tis_per_dagrun
        self.executor = executor
        self.executor_config = dict(executor_config or {})
        self.do_xcom_push = do_xcom_push
        self.multiple_outputs = multiple_outputs
        self.inlets = _listed(inlets)
        self.outlets = _listed(outlets)
        self.doc = doc
        self.doc_md = doc_md
        self.doc_json = doc_json
        self.doc_yaml = doc_yaml
        self.doc_rst = doc_rst
        self.logger_name = logger_name
        self.allow_nested_operators = allow_nested_operators
        self.render_template_as_native_obj = render_template_as_native_obj
        self.isolation = self._isolation(isolation)
        self.join_graph(dag, group)

    def finish_construction(self) -> None:
        """Called once, after the constructors of all classes: wait for the tasks whose results are arguments."""
        self.__dict__["_is_constructed"] = True
        for name in self.template_fields:
            self._wait_for_references(getattr(self, name, None))

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name in self.template_fields and self.__dict__.get("_is_constructed"):
            self._wait_for_references(value)

    def _wait_for_references(self, value: Any) -> None:
        for reference in references_in(value):
            for task in reference.tasks():
                if task is not self:
                    task.connect(self)

    def execute(self, context: Context) -> Any:
        """Do the work; what is returned becomes the task's result."""
        raise NotImplementedError(f"{type(self).__name__} has no execute()")

    def pre_execute(self, context: Context) -> None:
        """Called just before `execute`."""

    def post_execute(self, context: Context, result: Any = None) -> None:
        """Called just after `execute`."""

    @property
    def runs_programs_only(self) -> bool:
        """Whether `execute` runs user code in programs that it starts, and none in the task's own process."""
        return False

    def on_kill(self) -> None:
        """Called when the task is stopped from outside: end what was started."""

    def defer(
        self,
        *,
        trigger: BaseTrigger,
        method_name: str | None,
        kwargs: dict[str, Any] | None = None,
        timeout: timedelta | float | None = None,
    ) -> NoReturn:
        """Wait for the trigger without holding a process; a new instance goes on with this method and the event."""
        raise TaskDeferred(trigger=trigger, method_name=method_name, kwargs=kwargs, timeout=timeout)

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context) -> Any:
        """Called in place of `execute` when the wait for a trigger has ended."""
        kwargs = next_kwargs or {}
        if next_method == TRIGGER_FAILED:
            if traceback := kwargs.get("traceback"):
                self.log.error("the trigger failed:\n%s", "\n".join(traceback))
            error = kwargs.get("error", "Unknown")
            raise (TaskDeferralTimeout if error == TRIGGER_TIMED_OUT else TaskDeferralError)(error)
        return getattr(self, next_method)(context, **kwargs)

    def prepare_template(self) -> None:
        """Called before the template fields are rendered."""

    def render_template_fields(self, context: Context, jinja_env: Any = None) -> None:
        """Render the template fields; operators may do so in a way of their own, or again while they run."""
        self._rendering(context, jinja_env).render_fields(())

    def render_template(self, content: Any, context: Context, jinja_env: Any = None, seen_oids: Any = None) -> Any:
        """A value with every template in it rendered."""
        return self._rendering(context, jinja_env).render(content)

    def get_template_env(self, dag: Any = None) -> Any:
        """What templates are made with; more filters may be added to it."""
        return self._rendering(Context({}, {})).renderer.environment

    def _do_render_template_fields(
        self, parent: Any, template_fields: Iterable[str], context: Context, jinja_env: Any, seen_oids: Any
    ) -> None:
        # Operators of providers call it by this name to render some fields only.
        rendering = self._rendering(context, jinja_env)
        for name in template_fields:
            parent.__dict__[name] = rendering.render(getattr(parent, name))

    def _rendering(self, context: Context, environment: Any = None) -> Any:
        rendering = importlib.import_module(_RENDERING).Rendering(self.dag, self, self.dag.folder, context)
        if environment is not None:
            rendering.renderer.environment = environment
        return rendering

    @classmethod
    def partial(cls, *, task_id: str, **kwargs: Any) -> OperatorPartial:
        """Fix these arguments; `.expand()` or `.expand_kwargs()` on the result makes a mapped task of the rest."""
        defaults = scope.defaults_for(kwargs.get("dag"), kwargs.get("task_group"), kwargs.pop("default_args", None))
        return cls.partial_of(task_id, kwargs, defaults)

    @classmethod
    def partial_of(
        cls, task_id: str, kwargs: dict[str, Any], defaults: Mapping[str, Any], into: str | None = None
    ) -> OperatorPartial:
        """Like `partial`, with default arguments at hand; `into` names a dict argument that takes the mapped values."""
        names = accepted_names(cls)
        for name in set(kwargs) - names:
            hint = did_you_mean(name, names)
            raise TypeError(f"{cls.__name__} `{task_id}` has no argument `{name}`" + (f", {hint}" if hint else ""))
        merged = {name: value for name, value in defaults.items() if name in names and name != "params"} | kwargs
        general = accepted_names(BaseOperator) - {"dag", "task_group", "task_id"}
        with scope.outside():
            settings = BaseOperator(task_id=task_id, **{name: merged[name] for name in general & merged.keys()})
        settings.__dict__["_default_args"] = {name: merged[name] for name in merged.keys() - kwargs.keys()}
        return OperatorPartial(cls, settings, merged, into)

    @property
    def output(self) -> XComArg:
        """What this task returns, to be passed to others."""
        return XComArg(self)

    @property
    def task_type(self) -> str:
        return type(self).__name__

    @property
    def log(self) -> logging.Logger:
        return logging.getLogger("airflow.task" if self.logger_name is None else f"airflow.task.{self.logger_name}")

    @property
    def settings(self) -> BaseOperator:
        """Where the arguments that all operators have are found; a mapped task keeps them elsewhere."""
        return self

    def has_dag(self) -> bool:
        return self.dag is not None

    def get_dag(self) -> Any:
        return self.dag

    def __repr__(self) -> str:
        return f"<Task({self.task_type}): {self.task_id}>"

    def _refuse(self, unknown: Mapping[str, Any], task_id: str) -> None:
        for name in unknown:
            hint = did_you_mean(name, accepted_names(type(self)))
            owner = f"{type(self).__name__} `{task_id}`"
            raise TypeError(f"{owner} has no argument `{name}`" + (f", {hint}" if hint else ""))

    def _whole(self, name: str, value: Any) -> int:
        try:
            return int(value)
        except (TypeError, ValueError):
            raise TypeError(f"expected `{name}` of task `{self.task_id}` to be a number, got: {value!r}") from None

    def _at_least_one(self, name: str, value: int) -> int:
        if value < 1:
            raise ValueError(f"expected `{name}` of task `{self.task_id}` to be at least 1, got: {value}")
        return value

    def _duration(self, name: str, value: timedelta | float) -> timedelta:
        if isinstance(value, timedelta):
            return value
        if isinstance(value, int | float) and not isinstance(value, bool):
            return timedelta(seconds=value)
        raise TypeError(
            f"expected `{name}` of task `{self.task_id}` to be a timedelta or a number of seconds, got: {value!r}"
        )

    def _timedelta_or_none(self, name: str, value: timedelta | None) -> timedelta | None:
        if value is not None and not isinstance(value, timedelta):
            raise ValueError(f"expected `{name}` of task `{self.task_id}` to be a timedelta, got: {value!r}")
        return value

    def _isolation(self, value: str | None) -> str | None:
        if value not in (None, "process", "reuse"):
            raise ValueError(f"expected `isolation` of task `{self.task_id}` to be process or reuse, got: {value!r}")
        return value


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple | set) else [value]
