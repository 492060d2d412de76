"""Checks that a set of nodes is a tree of acyclic graphs, with messages that name the tasks and the place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from headrace.definition.texts import is_storable
from headrace.definition.workflow import TRIGGER_RULES, Node, Workflow
from headrace.errors import CycleError, DanglingEdgeError, DefinitionError, DuplicateTaskError, did_you_mean


def check_workflow(workflow: Workflow) -> Workflow:
    """Return the workflow if it can run; otherwise raise a DefinitionError that says what is wrong and where."""
    if not workflow.nodes:
        raise DefinitionError(f"workflow `{workflow.name}` has no root", file=workflow.place.file or None)
    root = workflow.nodes[0]
    if root.parent is not None or root.kind != "group":
        raise DefinitionError(f"the first node of workflow `{workflow.name}` must be its root group, got: `{root.key}`")
    check_nodes(workflow.nodes, owner=f"workflow `{workflow.name}`", is_fragment=False)
    return workflow


def check_nodes(nodes: Sequence[Node], owner: str, *, is_fragment: bool) -> None:
    """Check keys, parents, edges, rules and cycles of a workflow's nodes or of a fragment that grows at run time."""
    by_key = _index(nodes, owner)
    for node in nodes:
        _check_node(node, by_key, owner, is_root=node is nodes[0] and not is_fragment, is_fragment=is_fragment)
        if node.on_failure:
            check_nodes(node.on_failure, owner, is_fragment=True)
    _check_lockstep(nodes, owner)
    cycle = find_cycle(nodes)
    if cycle is not None:
        path = " → ".join(f"`{key}`" for key in cycle)
        node = by_key[cycle[0]]
        raise CycleError(f"{owner} waits for itself: {path}", file=node.place.file or None, line=node.place.line)


def _index(nodes: Iterable[Node], owner: str) -> dict[str, Node]:
    by_key: dict[str, Node] = {}
    for node in nodes:
        other = by_key.get(node.key)
        if other is not None:
            raise DuplicateTaskError(
                f"{owner} has two tasks with the key `{node.key}`"
                + (f", the first one at `{other.place}`" if other.place.file else ""),
                file=node.place.file or None,
                line=node.place.line,
            )
        by_key[node.key] = node
    return by_key


def _check_node(node: Node, by_key: dict[str, Node], owner: str, *, is_root: bool, is_fragment: bool) -> None:
    file, line = node.place.file or None, node.place.line
    if not is_storable(node.key):
        raise DefinitionError(
            f"the key of task {node.key!r} of {owner} holds a character that cannot be stored", file=file, line=line
        )
    if node.parent is None and not is_root and not is_fragment:
        raise DefinitionError(f"task `{node.key}` of {owner} has no parent", file=file, line=line)
    if node.parent is not None:
        _check_parent(node, by_key.get(node.parent), owner)
    for key in node.upstream:
        if key not in by_key:
            raise DanglingEdgeError(
                f"task `{node.key}` waits for `{key}`, but {owner} has no such task",
                hint=did_you_mean(key, by_key),
                file=file,
                line=line,
            )
    if node.trigger_rule not in TRIGGER_RULES:
        raise DefinitionError(
            f"expected the trigger rule of task `{node.key}` to be one of {', '.join(TRIGGER_RULES)},"
            f" got: `{node.trigger_rule}`",
            hint=did_you_mean(node.trigger_rule, TRIGGER_RULES),
            file=file,
            line=line,
        )
    if (node.kind == "mapped") != (node.expand is not None):
        raise DefinitionError(
            f"task `{node.key}` of {owner} must be mapped exactly if it has a length", file=file, line=line
        )


def _check_lockstep(nodes: Sequence[Node], owner: str) -> None:
    first: dict[str, Node] = {}
    for node in nodes:
        if node.lockstep and first.setdefault(node.lockstep, node).expand != node.expand:
            raise DefinitionError(
                f"tasks `{first[node.lockstep].key}` and `{node.key}` of {owner} are in lockstep `{node.lockstep}`,"
                " so they must have the same length",
                file=node.place.file or None,
                line=node.place.line,
            )


def _check_parent(node: Node, parent: Node | None, owner: str) -> None:
    if parent is not None and parent.kind == "group":
        return
    problem = "does not exist" if parent is None else "is not a group"
    raise DefinitionError(
        f"task `{node.key}` of {owner} is inside `{node.parent}`, which {problem}",
        file=node.place.file or None,
        line=node.place.line,
    )


def find_cycle(nodes: Iterable[Node]) -> list[str] | None:
    """A path of keys that ends where it began, or None.

    A node waits for its parent to open and for the end of its upstream nodes; a group ends after its children.
    """
    waits_for = _waiting(list(nodes))
    done: set[_Moment] = set()
    for start in waits_for:
        if start in done:
            continue
        path = [start]
        on_path = {start}
        pending: list[Iterator[_Moment]] = [iter(waits_for[start])]
        while pending:
            following = next(pending[-1], None)
            if following is None:
                pending.pop()
                finished = path.pop()
                on_path.discard(finished)
                done.add(finished)
            elif following in on_path:
                return _readable(path[path.index(following) :])
            elif following in waits_for and following not in done:
                path.append(following)
                on_path.add(following)
                pending.append(iter(waits_for[following]))
    return None


class _Moment(NamedTuple):
    """The beginning or the end of a node."""

    key: str
    is_end: bool


def _waiting(nodes: Sequence[Node]) -> dict[_Moment, list[_Moment]]:
    """Which moment comes only after which others."""
    waits_for: dict[_Moment, list[_Moment]] = {}
    for node in nodes:
        waits_for[_Moment(node.key, False)] = [_Moment(key, True) for key in node.upstream]
        waits_for[_Moment(node.key, True)] = [_Moment(node.key, False)]
    for node in nodes:
        if node.parent is not None and _Moment(node.parent, True) in waits_for:
            waits_for[_Moment(node.key, False)].append(_Moment(node.parent, False))
            waits_for[_Moment(node.parent, True)].append(_Moment(node.key, True))
    return waits_for


def _readable(cycle: Sequence[_Moment]) -> list[str]:
    """The keys of a cycle, each once, in the order of execution and back to the first."""
    # The path follows "waits for" backwards; people read it in the order of execution.
    keys = list(dict.fromkeys(moment.key for moment in reversed(cycle)))
    return [*keys, keys[0]]


def leaves(nodes: Iterable[Node]) -> set[str]:
    """Keys of the nodes that nobody waits for."""
    nodes = list(nodes)
    waited_for = {key for node in nodes for key in node.upstream}
    return {node.key for node in nodes if node.key not in waited_for}
