"""The inside of a `py>` task: finds the function, fills its arguments from the parameters, provides `import digdag`.

Works in the task process and also as a program of its own under another Python (`python_program.py COMMAND IN OUT`),
so it uses nothing but the standard library.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import sys
import traceback
import types
from typing import Any, Callable  # noqa: UP035 (also read by older Pythons)

if sys.version_info >= (3, 14):
    from annotationlib import Format

    # Annotations that can only be evaluated by a type checker are nothing to fail about.
    _signature_of = functools.partial(inspect.signature, annotation_format=Format.FORWARDREF)
else:
    _signature_of = inspect.signature


class CommandError(Exception):
    """The command of a `py>` task cannot be called; the message says why."""


class Environment:
    """`digdag.env`: the task's parameters and what it leaves behind."""

    def __init__(self) -> None:
        self.begin({})

    def begin(self, params: dict[str, Any]) -> None:
        """Forget the last task. User modules may hold this object since they were imported, so it stays the same."""
        self.params = params
        self.store_params: dict[str, Any] = {}
        self.export_params: dict[str, Any] = {}
        self.state_params: dict[str, Any] = {}
        # Users set more in it than tasks: `digdag.env.subtask_config["_parallel"] = True`.
        self.subtask_config: dict[str, Any] = {}
        self._subtasks = 0

    def store(self, params: dict[str, Any] | None = None, **named: Any) -> None:
        """Give parameters to the tasks that come after this one."""
        self.store_params.update(_as_json({**(params or {}), **named}))

    def export(self, params: dict[str, Any] | None = None, **named: Any) -> None:
        """Give parameters to the subtasks of this task."""
        self.export_params.update(_as_json({**(params or {}), **named}))

    def set_state(self, params: dict[str, Any] | None = None, **named: Any) -> None:
        """Accepted and ignored, as it always was."""
        self.state_params.update({**(params or {}), **named})

    def add_subtask(self, task: Callable[..., Any] | dict[str, Any] | None = None, **params: Any) -> None:
        """Add a task below this one: a function with its parameters, or a task as in a `.dig` file."""
        if isinstance(task, dict) or task is None:
            body = {**(task or {}), **params}
        else:
            body = {"py>": _path_of(task), **params}
        self.subtask_config[f"+subtask{self._subtasks}"] = _as_json(body)
        self._subtasks += 1


env = Environment()
module = types.ModuleType("digdag", "What a `py>` task reads and leaves behind.")
module.env = env  # type: ignore[attr-defined]


def call(command: str, params: dict[str, Any]) -> None:
    """Call `module.function`, `module.Class.method` or `module.Class` (its `run`) with its arguments filled in."""
    target, name = _find(command, params)
    if inspect.isclass(target):
        target, name = _instance(target, params), f"{name}.run"
        if not hasattr(target, "run"):
            raise CommandError(f"class `{command}` has no method `run`")
        target = target.run
    if not callable(target):
        raise CommandError(f"`{command}` is not a function")
    target(**_arguments(target, name, params))


def _find(command: str, params: dict[str, Any]) -> tuple[Any, str]:
    *parts, name = command.split(".")
    if not parts or not all((*parts, name)):
        raise CommandError(f"expected `py>` to name a function like `module.function`, got: `{command}`")
    found = _import(".".join(parts))
    if found is not None:
        return _attribute(found, name, ".".join(parts)), name
    *parts, class_name = parts
    found = _import(".".join(parts)) if parts else None
    if found is None:
        raise CommandError(f"there is no module `{'.'.join([*parts, class_name])}` for `py>: {command}`")
    owner = _attribute(found, class_name, ".".join(parts))
    if not inspect.isclass(owner):
        raise CommandError(f"`{'.'.join(parts)}.{class_name}` is neither a module nor a class")
    return _attribute(_instance(owner, params), name, f"{'.'.join(parts)}.{class_name}"), name


def _import(name: str) -> types.ModuleType | None:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # Only the module itself may be missing; one that it imports is the user's mistake and is shown as such.
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            return None
        raise


def _attribute(owner: Any, name: str, owner_name: str) -> Any:
    try:
        return getattr(owner, name)
    except AttributeError:
        raise CommandError(f"`{owner_name}` has no `{name}`") from None


def _instance(owner: type, params: dict[str, Any]) -> Any:
    if owner.__init__ is object.__init__:  # type: ignore[misc]
        return owner()
    return owner(**_arguments(owner, "__init__", params))


def _arguments(target: Any, name: str, params: dict[str, Any]) -> dict[str, Any]:
    wanted, takes_everything = _parameters(target)
    for parameter, is_required in wanted.items():
        if is_required and parameter not in params:
            raise TypeError(f"Method '{name}' requires parameter '{parameter}' but not set")
    if takes_everything:
        return dict(params)
    return {parameter: params[parameter] for parameter in wanted if parameter in params}


def _parameters(target: Any) -> tuple[dict[str, bool], bool]:
    """What can be given by name, with whether it must be, and whether any other name can be given, too."""
    # Most are plain functions, and all of `inspect.signature` is fifty pages of memory for a new process to copy.
    if type(target) is types.FunctionType and not vars(target):
        code = target.__code__
        names = code.co_varnames[code.co_posonlyargcount : code.co_argcount + code.co_kwonlyargcount]
        has_default = code.co_varnames[code.co_argcount - len(target.__defaults__ or ()) : code.co_argcount]
        optional = {*has_default, *(target.__kwdefaults__ or ())}
        return {name: name not in optional for name in names}, bool(code.co_flags & inspect.CO_VARKEYWORDS)
    found = _signature_of(target).parameters.values()
    by_name = [one for one in found if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
    takes_everything = any(one.kind is one.VAR_KEYWORD for one in found)
    return {one.name: one.default is one.empty for one in by_name}, takes_everything


def _path_of(function: Callable[..., Any]) -> str:
    name = getattr(function, "__qualname__", "")
    if not name or "<" in name:
        raise TypeError("a subtask must be a function or method of a module, not a local one")
    return f"{function.__module__}.{name}"


def _as_json(value: Any) -> Any:
    try:
        return json.loads(json.dumps(value))
    except (TypeError, ValueError) as error:
        raise TypeError(f"parameters must be made of JSON values: {error}") from None


def _users_part(trace: types.TracebackType | None) -> types.TracebackType | None:
    """A traceback without the frames of this file."""
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    return trace


def main(command: str, source: str, target: str) -> int:
    """Run one command with parameters from a file, and write what it leaves behind to another one."""
    del sys.path[0]
    sys.path.append(".")
    with open(source, encoding="utf-8") as stream:
        params = json.load(stream)["params"]
    sys.modules["digdag"] = module
    env.begin(params)
    result: dict[str, Any] = {}
    try:
        call(command, params)
        result = {
            "subtask_config": env.subtask_config,
            "export_params": env.export_params,
            "store_params": env.store_params,
        }
    except Exception as error:
        lines = traceback.format_exception(type(error), error, _users_part(error.__traceback__))
        result = {"error": {"class": type(error).__name__, "message": str(error), "backtrace": lines}}
    with open(target, "w", encoding="utf-8") as stream:
        json.dump(result, stream)
    return 1 if "error" in result else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
