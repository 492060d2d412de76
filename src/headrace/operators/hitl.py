"""Tasks that wait for a person: to choose, to approve, to fill in a form, or to choose a branch.

They hold no slot and no process meanwhile. `headrace questions` lists what is asked, `headrace answer` answers.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, TypedDict
from urllib.parse import urlencode, urlsplit, urlunsplit

from headrace.authoring.dag import BaseOperator, Context
from headrace.authoring.dag.configuration import conf
from headrace.authoring.dag.exceptions import (
    AirflowException,
    AirflowProviderDeprecationWarning,
    TaskAwaitingInput,
    TaskDeferralTimeout,
)
from headrace.authoring.dag.params import ParamsDict
from headrace.definition import Person, Question
from headrace.operators.branch import follow, skip_tasks

# Named, not imported: this file is loaded where nobody is ever notified.
_CALLBACKS = "headrace.runner.callbacks"


class HITLUser(TypedDict):
    """Somebody who may answer."""

    id: str
    name: str


class HITLTriggerEventError(Exception):
    """Nobody could be asked."""


class HITLTimeoutError(HITLTriggerEventError):
    """Nobody has answered in time, and there is no default."""


class HITLRejectException(AirflowException):
    """Somebody has rejected, which is to fail the task."""


class HITLOperator(BaseOperator):
    """Asks a person to choose among options, and perhaps to fill in parameters. The answer is its result."""

    operator_name = "question"
    template_fields: Sequence[str] = ("subject", "body")
    shown_fields: ClassVar[Sequence[str]] = ("subject", "options", "multiple", "defaults")

    def __init__(
        self,
        *,
        subject: str,
        options: list[str],
        body: str | None = None,
        defaults: str | list[str] | None = None,
        multiple: bool = False,
        params: ParamsDict | Mapping[str, Any] | None = None,
        notifiers: Any = None,
        assigned_users: HITLUser | list[HITLUser] | None = None,
        response_timeout: timedelta | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.subject = subject
        self.body = body
        self.options = list(options)
        self.defaults = [defaults] if isinstance(defaults, str) else defaults
        self.multiple = multiple
        self.form = ParamsDict(params)
        # What has a value already can be rendered as any task's parameters can.
        self.params = ParamsDict({name: one for name, one in self.form.params().items() if one.has_value})
        self.notifiers = list(notifiers) if isinstance(notifiers, list | tuple) else [notifiers] if notifiers else []
        self.assigned_users = [assigned_users] if isinstance(assigned_users, Mapping) else assigned_users
        self.response_timeout = response_timeout or self._time_of_a_try()
        self.validate_options()
        self.validate_params()
        self.validate_defaults()

    def _time_of_a_try(self) -> timedelta | None:
        """The time that older files give a person by the limit of the whole try, which does not fail it then."""
        limit, self.execution_timeout = self.execution_timeout, None
        if limit is not None:
            warnings.warn(
                f"`execution_timeout` of task `{self.task_id}` limits how long it waits for a person:"
                " `response_timeout` says so",
                AirflowProviderDeprecationWarning,
                stacklevel=4,
            )
        return limit

    def validate_options(self) -> None:
        if not self.options:
            raise ValueError(f"expected the options of task `{self.task_id}` to name at least one, got none")

    def validate_params(self) -> None:
        if "_options" in self.form:
            raise ValueError(f"task `{self.task_id}` cannot have a parameter `_options`: the name is reserved")

    def validate_defaults(self) -> None:
        unknown = [one for one in self.defaults or () if one not in self.options]
        if unknown:
            raise ValueError(
                f"expected the defaults of task `{self.task_id}` to be among its options {self.options!r},"
                f" got: {unknown[0]!r}"
            )
        if not self.multiple and len(self.defaults or ()) > 1:
            raise ValueError(f"task `{self.task_id}` has several defaults, but `multiple` is not set")

    def execute(self, context: Context) -> Any:
        """Ask, tell whom the notifiers know, and wait."""
        self.log.info("waits for an answer: `headrace questions` lists what is asked, `headrace answer` answers")
        call_all = importlib.import_module(_CALLBACKS).call_all
        call_all(self.notifiers, context, f"a notifier of task `{self.task_id}`")
        raise TaskAwaitingInput(question=self.question, method_name="execute_complete", timeout=self.response_timeout)

    @property
    def question(self) -> Question:
        """What is asked, with the templates rendered."""
        users = self.assigned_users or ()
        return Question(
            subject=self.subject,
            body=self.body or "",
            options=tuple(self.options),
            is_multiple=self.multiple,
            defaults=None if self.defaults is None else tuple(self.defaults),
            params=self.form.dump(),
            param_schemas=self.form.schemas(),
            respondents=tuple(Person(id=str(user["id"]), name=str(user["name"])) for user in users),
        )

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context) -> Any:
        try:
            return super().resume_execution(next_method, next_kwargs, context)
        except TaskDeferralTimeout:
            raise HITLTimeoutError("nobody has answered in time, and there is no default") from None

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        """Go on with the answer: {"chosen_options", "params_input", "responded_at", "responded_by_user"}."""
        for name, value in event["params"].items():
            self.params[name] = value
        by = event["by"]
        who = "nobody in time, so that the default counts" if by is None else f"`{by['name']}`"
        self.log.info("answered by %s: %s", who, ", ".join(event["chosen"]))
        return {
            "chosen_options": event["chosen"],
            "params_input": event["params"],
            "responded_at": datetime.fromisoformat(event["at"]) if event["at"] else datetime.now(UTC),
            "responded_by_user": by,
        }

    def generate_link_to_ui(
        self,
        *,
        task_instance: Any,
        base_url: str | None = None,
        options: str | list[str] | None = None,
        params_input: dict[str, Any] | None = None,
    ) -> str:
        """The address of Airflow's page for the answer, as its `[api] base_url` says it."""
        chosen = [options] if isinstance(options, str) else options or []
        _refuse_unknown("options", chosen, self.options)
        _refuse_unknown("params", params_input or {}, self.form)
        base = base_url or conf.get("api", "base_url", fallback=None)
        if not base:
            raise ValueError("expected a base_url, as `[api] base_url` has none")
        query: dict[str, Any] = {"_options": chosen} if chosen else {}
        query |= {**(params_input or {}), "map_index": task_instance.map_index}
        run = f"/dags/{task_instance.dag_id}/runs/{task_instance.run_id}"
        path = f"{run}/tasks/{task_instance.task_id}/required_actions"
        return urlunsplit((*urlsplit(base)[:2], path, urlencode(query), ""))

    @staticmethod
    def generate_link_to_ui_from_context(
        *,
        context: Context,
        base_url: str | None = None,
        options: list[str] | None = None,
        params_input: dict[str, Any] | None = None,
    ) -> str:
        """The same, for the task that is running."""
        task = context["task"]
        if not isinstance(task, HITLOperator):
            raise ValueError(f"expected the task to be a HITLOperator, got: {type(task).__name__}")
        return task.generate_link_to_ui(
            task_instance=context["ti"], base_url=base_url, options=options, params_input=params_input
        )


class ApprovalOperator(HITLOperator):
    """Asks a person to approve. What comes after a task that was rejected is skipped; or it fails, if it is to."""

    APPROVE = "Approve"
    REJECT = "Reject"

    def __init__(
        self, *, ignore_downstream_trigger_rules: bool = False, fail_on_reject: bool = False, **kwargs: Any
    ) -> None:
        for name in ("options", "multiple"):
            if name in kwargs:
                raise ValueError(f"an ApprovalOperator has its own `{name}`: it cannot be given")
        super().__init__(options=[self.APPROVE, self.REJECT], multiple=False, **kwargs)
        self.ignore_downstream_trigger_rules = ignore_downstream_trigger_rules
        self.fail_on_reject = fail_on_reject

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        answer = super().execute_complete(context, event)
        if answer["chosen_options"][0] == self.APPROVE:
            return answer
        if self.fail_on_reject:
            raise HITLRejectException("it was rejected")
        everything = self.ignore_downstream_trigger_rules
        after = self.get_flat_relatives() if everything else self.get_direct_relatives()
        skip_tasks(context["ti"], [task.task_id for task in after if not task.is_teardown])
        return answer


class HITLBranchOperator(HITLOperator):
    """Asks a person which of the tasks after it go on: options are their ids, or lead to them by `options_mapping`."""

    def __init__(self, *, options_mapping: dict[str, str] | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.options_mapping = options_mapping or {}
        _refuse_unknown("options_mapping", self.options_mapping, self.options)
        wrong = {option: one for option, one in self.options_mapping.items() if not isinstance(one, str)}
        if wrong:
            raise ValueError(f"expected the values of options_mapping to be ids of tasks, got: {wrong!r}")

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        answer = super().execute_complete(context, event)
        return follow(self, context, [self.options_mapping.get(one, one) for one in answer["chosen_options"]])


class HITLEntryOperator(HITLOperator):
    """Asks a person to fill in parameters."""

    OK = "OK"

    def __init__(self, **kwargs: Any) -> None:
        if "options" not in kwargs:
            kwargs = {"defaults": [self.OK], **kwargs, "options": [self.OK]}
        super().__init__(**kwargs)


def _refuse_unknown(what: str, given: Any, known: Any) -> None:
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise ValueError(f"expected {what} to be among {list(known)!r}, got: {unknown[0]!r}")
