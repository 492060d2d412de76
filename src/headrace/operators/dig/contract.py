"""What an operator of a `.dig` task gets and gives. A plug-in's operators use exactly this.

    def greet(job: Job) -> Outcome:
        print("hello", job.params.text("_command"))
        return Outcome(store={"greeted": True})

In the file `dig_operators.py` of a project this makes `greet>: Ann` work. An operator that fails raises OperatorError,
one that wants to be called again later raises PollAgain. Any other exception also fails the task.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar, overload

from headrace.authoring.dig import as_boolean, as_integer, as_map, as_seconds, as_text
from headrace.definition import Place, Retry
from headrace.errors import HeadraceError
from headrace.handoff import AssetEvent, Channel, RunContext
from headrace.operators.dig.secret_lookup import find_secret

T = TypeVar("T")
D = TypeVar("D")
_REQUIRED: Any = object()


class OperatorError(HeadraceError):
    """The task failed, for the reason in the message."""

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        is_retryable: bool = True,
        type_name: str | None = None,
        detail: str = "",
    ) -> None:
        super().__init__(message, hint=hint)
        self.is_retryable = is_retryable
        """False: the same failure would come again, whatever `_retry` says."""
        self.type_name = type_name or type(self).__name__
        self.detail = detail
        """The user's own traceback, if there is one."""


def no_secret(*names: str) -> OperatorError:
    """The project has none of these secrets."""
    return OperatorError(
        f"the project has no secret {' or '.join(f'`{name}`' for name in names)}",
        hint=f"`headrace secrets --project PROJECT --set {names[0]}` sets it",
    )


class PollAgain(Exception):
    """Call the operator again after a while, with this state. The task holds no process meanwhile."""

    def __init__(self, after_seconds: float, state: dict[str, Any]) -> None:
        super().__init__(after_seconds, state)
        self.after_seconds = after_seconds
        self.state = state


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a successful operator leaves behind."""

    subtasks: Any = None
    """A body as in a file (`{"sh>": …}` or `{"+a": …}`), which becomes the tasks below this one."""
    export: dict[str, Any] = field(default_factory=dict)
    """Parameters for the subtasks."""
    store: dict[str, Any] = field(default_factory=dict)
    """Parameters for the tasks that come after this one."""
    reset: tuple[str, ...] = ()
    """Dotted paths of parameters that are deleted before `store` is applied."""
    events: tuple[AssetEvent, ...] = ()
    """Assets that the operator has updated."""
    retry: Retry | None = None
    """How often the group above is tried, if that was the question."""


class Params:
    """The evaluated parameters of a task, inherited ones and its own. Remembers which were asked for."""

    def __init__(self, values: Mapping[str, Any], operator: str, asked: set[str] | None = None) -> None:
        self._values = values
        self._operator = operator
        self.asked: set[str] = set() if asked is None else asked

    def everything(self) -> dict[str, Any]:
        """All parameters, for an operator that hands them on to user code."""
        self.asked.update(self._values)
        return dict(self._values)

    def with_defaults(self, name: str) -> Params:
        """These parameters, completed by those in the map of this name (`sh: {shell: [bash]}`)."""
        defaults = self.read(name, as_map, {})
        return Params({**defaults, **self._values}, self._operator, self.asked)

    @overload
    def read(self, key: str, convert: Callable[[Any], T]) -> T: ...
    @overload
    def read(self, key: str, convert: Callable[[Any], T], default: D) -> T | D: ...
    def read(self, key: str, convert: Callable[[Any], Any], default: Any = _REQUIRED) -> Any:
        """One parameter; without a default it is required."""
        self.asked.add(key)
        value = self._values.get(key)
        name = f"{self._operator}>" if key == "_command" else key
        if value is None:
            if default is _REQUIRED:
                raise OperatorError(f"parameter `{name}` is required but not set")
            return default
        try:
            return convert(value)
        except ValueError as error:
            raise OperatorError(f"expected parameter `{name}` {error}") from None

    def text(self, key: str) -> str:
        return self.read(key, as_text)

    def integer(self, key: str) -> int:
        return self.read(key, as_integer)

    def boolean(self, key: str, default: bool = False) -> bool:
        return self.read(key, as_boolean, default)

    def seconds(self, key: str) -> int:
        return self.read(key, as_seconds)

    def raw(self, key: str) -> Any:
        """A body that becomes tasks, or None."""
        return self.read(key, lambda value: value, None)


class Render(Protocol):
    def __call__(self, text: str, name: str = "text") -> str:
        """The text with its `${…}` evaluated; `name` says in messages which text it was."""
        ...


@dataclass(frozen=True, slots=True)
class Job:
    """One call of an operator."""

    key: str
    operator: str
    params: Params
    root: Path
    """The project's folder."""
    folder: Path
    """Where the task works: the project's folder or, below it, `_workdir`."""
    state: dict[str, Any]
    """What the operator kept when it last raised PollAgain; empty at first."""
    place: Place
    channel: Channel
    run: RunContext
    """The run that the task belongs to."""
    render: Render
    """Evaluates the `${…}` of a text that is not among the parameters, such as that of a file."""
    revision: str = ""
    """Digest of the file's revision."""
    identity: str = ""
    """The same in all tries of a task and different from that of every other task: a key for work that must happen
    once. A task that is cleared gets another one."""
    own_keys: tuple[str, ...] = ()
    """The parameters that the task itself has, as opposed to those that it inherits."""
    try_number: int = 1
    waited_seconds: float = 0.0
    """How long ago the task's first try began, by the store's clock."""

    def secret(self, *names: str) -> str | None:
        """The first of these secrets that the project has; the log does not show it."""
        return next((value for name in names if (value := find_secret(self.channel, name)) is not None), None)

    def required_secret(self, *names: str) -> str:
        value = self.secret(*names)
        if value is None:
            raise no_secret(*names)
        return value


Operator = Callable[[Job], Outcome | None]
