"""Compiles the maps of a `.dig` file, and the bodies that operators generate at run time, into nodes.

A map with an operator (`sh>: …`) is a task and all its other keys are its parameters; any other map is a group of the
`+tasks` in it. Children of a group run one after the other unless it says `_parallel`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from headrace.authoring.dig.directives import Directives, Parallel
from headrace.authoring.dig.mistakes import Mistakes
from headrace.authoring.dig.naming import check_task_name
from headrace.authoring.dig.operator_names import check_operator
from headrace.authoring.dig.ordering import Sibling, upstreams
from headrace.authoring.dig.values import is_template, shown
from headrace.authoring.dig.yaml_dialect import Section, place_of, plain
from headrace.definition import NOTIFY, Isolation, Node, Place, Retry
from headrace.errors import DefinitionError, did_you_mean

WORKFLOW_KEYS = ("timezone", "schedule", "sla", "_export", "_error", "_check", "_retry", "_parallel")
GROUP_KEYS = (*WORKFLOW_KEYS, "_background", "_after", "_secrets", "_disable")
COMPILED_KEYS = frozenset(("_export", "_error", "_background", "_after", "_disable"))
"""Keys of an operator task that the compiled node holds elsewhere and that its operator does not see."""

FAILURE_ALERT = "^failure-alert"
"""How the task is called that a failed workflow adds to itself."""

RETRY_QUESTION = "_retry"
"""The operator that says how often a group is tried. No file can name it."""

NO_USER_CODE = frozenset(
    (
        *(
            "call",
            "call_dag",
            "echo",
            "fail",
            "for_each",
            "for_range",
            "if",
            "loop",
            "notify",
            "param_get",
            "param_set",
        ),
        *("require", "wait"),
    )
)
"""Operators that run no code of the user's, so that one process may serve many of them."""

IN_PROGRAMS = frozenset(("embulk", "rb", "sh"))
"""Operators that run code of the user's in programs only, of which each try starts its own."""


def compile_tree(body: Mapping[str, Any], key: str, place: Place) -> tuple[Node, ...]:
    """The nodes of a whole file under its root `key`, which is a group whatever it holds."""
    compiler = _Compiler(is_generated=False)
    owner = f"workflow `{key.removeprefix('+')}`"
    with compiler.mistakes.noted():
        check_workflow_keys(body, owner, place)
    with compiler.mistakes.noted():
        compiler.add_group(body, key, None, (), place, owner)
    compiler.mistakes.raise_any()
    root, *others = compiler.nodes
    return (msgspec.structs.replace(root, on_failure=(*root.on_failure, _failure_alert(key, place))), *others)


def _failure_alert(key: str, place: Place) -> Node:
    """What tells people, if the settings say how, that the workflow has failed."""
    return Node(
        key=key + FAILURE_ALERT,
        operator=NOTIFY,
        config={"_command": "Workflow session attempt failed"},
        isolation="reuse",
        cleans_up=True,
        place=place,
    )


def check_workflow_keys(body: Mapping[str, Any], owner: str, place: Place) -> None:
    """Refuse a key that the top level of a file cannot have."""
    _check_keys(body, WORKFLOW_KEYS, owner, place)


def compile_fragment(
    body: Any, key: str, place: Place, *, upstream: tuple[str, ...] = (), directive: str = "subtasks"
) -> tuple[Node, ...]:
    """The nodes that a task grows: the first is `key` itself, a task if the body has an operator and else a group.

    An empty body gives no nodes. `place` stands for everything that was not written in a file, and `directive` names
    the body in messages.
    """
    body = _joined(body, f"`{directive}` of task `{key.rpartition('^')[0]}`", place)
    if not body:
        return ()
    compiler = _Compiler(is_generated=True)
    compiler.add(body, key, None, upstream, place)
    compiler.mistakes.raise_any()
    return tuple(compiler.nodes)


def operator_keys(body: Mapping[str, Any]) -> list[str]:
    """The keys of a map that name an operator. A task has one, a group none."""
    return [key for key in body if key.endswith(">") or key == "_type"]


class _Compiler:
    """Collects nodes in file order."""

    def __init__(self, *, is_generated: bool) -> None:
        self.nodes: list[Node] = []
        self.mistakes = Mistakes()
        self._is_generated = is_generated

    def add(self, body: dict[str, Any], key: str, parent: str | None, upstream: tuple[str, ...], place: Place) -> None:
        owner = f"task `{key}`"
        if Directives(body, owner, place).flag("_disable"):
            self.nodes.append(Node(key=key, parent=parent, kind="group", upstream=upstream, place=place))
        elif operator_keys(body):
            self._add_task(body, key, parent, upstream, place)
        else:
            _check_keys(body, GROUP_KEYS, owner, place)
            self.add_group(body, key, parent, upstream, place, owner)

    def add_group(
        self,
        body: Mapping[str, Any],
        key: str,
        parent: str | None,
        upstream: tuple[str, ...],
        place: Place,
        owner: str,
    ) -> None:
        directives = Directives(body, owner, place)
        node = Node(
            key=key,
            parent=parent,
            kind="group",
            upstream=upstream,
            export=directives.export(),
            retry=directives.retry(),
            retry_question=_retry_question(body, key, place),
            on_failure=_error_nodes(body, key, place),
            place=place,
        )
        self.nodes.append(node)
        is_at_top = parent is None and not self._is_generated
        self._add_children(body, key, directives.parallel(), place, is_at_top=is_at_top)

    def _add_children(
        self, body: Mapping[str, Any], key: str, parallel: Parallel, place: Place, *, is_at_top: bool
    ) -> None:
        children = self._children(body, key, place)
        waits: dict[str, list[str]] = {}
        with self.mistakes.noted():
            siblings = [_sibling(name, child, key, at) for name, (child, at) in children.items()]
            waits = upstreams(siblings, parallel)
        for name, (child, at) in children.items():
            with self.mistakes.noted():
                check_task_name(name, at, is_at_top=is_at_top)
                self.add(child, key + name, key, tuple(key + other for other in waits.get(name, ())), at)

    def _children(self, body: Mapping[str, Any], key: str, place: Place) -> dict[str, tuple[dict[str, Any], Place]]:
        """The bodies of a group's tasks and where they are written."""
        children: dict[str, tuple[dict[str, Any], Place]] = {}
        for name in body:
            if name.startswith("+"):
                at = place_of(body, name, place)
                with self.mistakes.noted():
                    children[name] = _joined(body[name], f"task `{key}{name}`", at), at
        return children

    def _add_task(
        self, body: Mapping[str, Any], key: str, parent: str | None, upstream: tuple[str, ...], place: Place
    ) -> None:
        operator = _operator(body, key, place)
        directives = Directives(body, f"task `{key}`", place)
        retry = directives.retry()
        node = Node(
            key=key,
            parent=parent,
            upstream=upstream,
            operator=operator,
            config=_local(body, retry),
            export=directives.export(),
            retry=retry,
            on_failure=_error_nodes(body, key, place),
            isolation=_isolation(operator),
            place=place,
        )
        self.nodes.append(node)


def _isolation(operator: str) -> Isolation:
    if operator in IN_PROGRAMS:
        return "programs"
    return "reuse" if operator in NO_USER_CODE else "default"


def _operator(body: Mapping[str, Any], key: str, place: Place) -> str:
    found = operator_keys(body)
    if len(found) > 1:
        names = " and ".join(f"`{name}`" for name in found)
        at = place_of(body, found[1], place)
        raise _error(f"task `{key}` has more than one operator: {names}", at, hint="make each a `+task` of its own")
    for name in body:
        if name.startswith("+"):
            at = place_of(body, name, place)
            raise _error(f"task `{key}` runs `{found[0]}`, so it cannot have the task `{name}` inside", at)
    operator = body["_type"] if found[0] == "_type" else found[0].removesuffix(">")
    if not isinstance(operator, str) or not operator:
        at = place_of(body, found[0], place)
        raise _error(f"expected task `{key}` to name its operator, got: {shown(operator)}", at)
    check_operator(operator, f"task `{key}`", place_of(body, found[0], place))
    return operator


def _local(body: Mapping[str, Any], retry: Retry) -> dict[str, Any]:
    """The task's own parameters, unevaluated and in file order, with the operator's value as `_command`."""
    local: dict[str, Any] = {}
    for key, value in body.items():
        # A `_retry` that became the node's own is the engine's business; one with a `${…}` is evaluated by each try.
        if key in COMPILED_KEYS or key == "_type" or (key == "_retry" and retry != Retry()):
            continue
        local["_command" if key.endswith(">") else key] = plain(value)
    return local


def _error_nodes(body: Mapping[str, Any], key: str, place: Place) -> tuple[Node, ...]:
    if body.get("_error") is None:
        return ()
    nodes = compile_fragment(body["_error"], f"{key}^error", place_of(body, "_error", place), directive="_error")
    return (msgspec.structs.replace(nodes[0], sees_siblings=True), *nodes[1:]) if nodes else ()


def _retry_question(body: Mapping[str, Any], key: str, place: Place) -> Node | None:
    """What evaluates the `${…}` in the `_retry` of a group that has failed."""
    value = plain(body.get("_retry"))
    if not is_template(value):
        return None
    return Node(
        key=f"{key}^retry",
        operator=RETRY_QUESTION,
        config={"_command": value},
        decides=False,
        isolation="reuse",
        place=place_of(body, "_retry", place),
    )


def _sibling(name: str, body: Mapping[str, Any], key: str, place: Place) -> Sibling:
    directives = Directives(body, f"task `{key}{name}`", place)
    # A disabled task is an empty group in its place: what else it says counts no more.
    is_disabled = directives.flag("_disable")
    return Sibling(
        name=name,
        owner=f"task `{key}{name}`",
        is_background=not is_disabled and directives.flag("_background"),
        background_place=place_of(body, "_background", place),
        after=[] if is_disabled else directives.after(),
        after_place=place_of(body, "_after", place),
    )


def _joined(body: Any, owner: str, place: Place) -> dict[str, Any]:
    """A body as one map: it may be written as a list of maps, which are put one after the other."""
    if isinstance(body, dict):
        return body
    if isinstance(body, list) and all(isinstance(part, dict) for part in body):
        joined = Section(place)
        for part in body:
            for key, value in part.items():
                joined.put(key, value, place_of(part, key, place))
        return joined
    raise _error(f"expected {owner} to be a map, got: {shown(plain(body))}", place)


def _check_keys(body: Mapping[str, Any], allowed: Iterable[str], owner: str, place: Place) -> None:
    for key in body:
        if not key.startswith("+") and key not in allowed:
            hint = did_you_mean(key, allowed) or _way_out(key, body[key])
            raise _error(f"{owner} has an unknown key: `{key}`", place_of(body, key, place), hint=hint)


def _way_out(key: str, value: Any) -> str | None:
    if key.endswith(">"):
        return f"put it into a task: `+name: {{{key}: …}}`"
    if isinstance(value, dict) and any(one.startswith(("+", "_type")) or one.endswith(">") for one in value):
        return f"the names of tasks begin with `+`: write `+{key}`"
    return None if key.startswith("_") else f"put the parameter `{key}` below `_export`"


def _error(message: str, place: Place, hint: str | None = None) -> DefinitionError:
    return DefinitionError(message, hint=hint, file=place.file or None, line=place.line)
