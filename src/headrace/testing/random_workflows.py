"""Small random workflows of both families: graphs with rules and mapping, trees with group retries and handlers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from headrace.definition import (
    NOOP,
    RUN_LATE,
    TRIGGER_RULES,
    Deadline,
    Deferral,
    Length,
    Node,
    Past,
    Retry,
    Schedule,
    Workflow,
    check_workflow,
    find_cycle,
    leaves,
)
from headrace.testing.random_assets import random_asset_schedule

WORK = "work"
"""The operator of a task whose end the simulation decides."""
POOLS = {"narrow": 1, "wide": 3}


def random_workflow(random: Random, name: str) -> Workflow:
    """A workflow that can run, with limits and now and then a schedule."""
    nodes = _graph(random) if random.random() < 0.5 else _tree(random)
    if random.random() < 0.4:
        nodes = (_with(nodes[0], calls_back=("success", "failed")), *nodes[1:])
    fields: dict[str, Any] = {}
    if random.random() < 0.3:
        fields["max_active_tasks"] = random.randint(1, 3)
        fields["max_active_tasks_scope"] = random.choice(("run", "workflow"))
    if random.random() < 0.3:
        fields["max_active_runs"] = random.randint(1, 2)
    if random.random() < 0.15:
        fields["timeout_seconds"] = random.choice((20.0, 60.0))
        fields["on_timeout"] = random.choice(("skip", "cancel"))
    if random.random() < 0.1:
        fields["fails_fast"] = True
    if random.random() < 0.25:
        fields["schedule"] = Schedule(
            type="interval", spec={"seconds": 30}, catch_up="all", start_at="2026-01-01T00:00:00+00:00"
        )
    # A dice of its own: what else a seed decides stays as it was.
    own = Random(repr(nodes))
    fields["deadlines"] = tuple(_deadlines(own, nodes[0].key))
    if "schedule" not in fields and own.random() < 0.5:
        fields["schedule"], fields["assets"] = random_asset_schedule(own)
    return check_workflow(Workflow(name=name, language="python", nodes=nodes, **fields))


def _deadlines(random: Random, root: str) -> Iterator[Deadline]:
    """Times by which a run is to be done: a miss is told, or adds tasks to the run."""
    if random.random() < 0.2:
        yield Deadline(name="told", counts_from="queued", seconds=random.choice((5.0, 30.0)), errand=RUN_LATE)
    if random.random() < 0.2:
        grows = fragment(random, f"{root}^sla")
        yield Deadline(name="grows", counts_from="run_after", seconds=random.choice((5.0, 30.0)), grows=grows)


def _graph(random: Random) -> tuple[Node, ...]:
    """Flat tasks with edges, any trigger rule, mapped tasks; only the leaves decide."""
    nodes = [Node(key="", kind="group")]
    for number in range(random.randint(2, 6)):
        earlier = [node.key for node in nodes[1:]]
        upstream = tuple(random.sample(earlier, min(len(earlier), random.choice((0, 1, 1, 2)))))
        fields = _task_fields(random)
        if upstream and random.random() < 0.25:
            fields |= {"kind": "mapped", "expand": Length(op="result", task=random.choice(upstream))}
        elif random.random() < 0.1:
            fields |= {"kind": "mapped", "expand": Length(op="literal", length=random.randint(0, 3))}
        if fields.get("kind") == "mapped" and random.random() < 0.3:
            fields["max_active_per_run"] = 1
        rule = random.choice(TRIGGER_RULES) if random.random() < 0.4 else "all_success"
        nodes.append(Node(key=f"t{number}", parent="", upstream=upstream, trigger_rule=rule, **fields))
    # A dice of its own: what else a seed decides stays as it was.
    own = Random(repr(nodes))
    if own.random() < 0.3:
        nodes += _lockstep(own, [node.key for node in nodes[1:]])
    if own.random() < 0.4:
        nodes = _with_needs(own, nodes)
    deciding = leaves(nodes[1:])
    return (nodes[0], *(_with(node, decides=node.key in deciding) for node in nodes[1:]))


def _with_needs(random: Random, nodes: Sequence[Node]) -> list[Node]:
    """Some tasks need what is further up than what they follow, whatever their own rule says."""
    above: dict[str, set[str]] = {}
    needs: dict[str, tuple[str, ...]] = {}
    for node in nodes:  # in an order in which each comes after what it follows
        above[node.key] = {*node.upstream, *(key for one in node.upstream for key in above[one])}
        further = sorted(above[node.key].difference(node.upstream))
        if further and random.random() < 0.5:
            needs[node.key] = tuple(random.sample(further, 1))
    needed = {key for keys in needs.values() for key in keys}
    return [_with(node, needs=needs.get(node.key, ()), is_needed=node.key in needed) for node in nodes]


def _lockstep(random: Random, earlier: list[str]) -> list[Node]:
    """Tasks that are multiplied alike and meet index by index, and one that waits for all of the last of them."""
    source = random.choice(earlier) if random.random() < 0.7 else None
    length = Length(op="literal", length=random.randint(0, 3)) if source is None else Length(op="result", task=source)
    nodes: list[Node] = []
    for number in range(random.randint(2, 4)):
        before = [node.key for node in nodes]
        upstream = random.sample(before, min(len(before), random.choice((1, 1, 2))))
        upstream += [source] if source is not None and not upstream else []
        upstream += random.sample(earlier, 1) if random.random() < 0.2 else []
        rule = random.choice(TRIGGER_RULES) if random.random() < 0.4 else "all_success"
        keeping: dict[str, Any] = {
            "kind": "mapped",
            "expand": length,
            "lockstep": "g",
            "upstream": tuple(dict.fromkeys(upstream)),
        }
        nodes.append(Node(key=f"g{number}", parent="", trigger_rule=rule, **_task_fields(random), **keeping))
    return [*nodes, Node(key="after", parent="", upstream=(nodes[-1].key,), **_task_fields(random))]


def _tree(random: Random) -> tuple[Node, ...]:
    """Nested groups whose children follow each other or run side by side, with group retries and handlers."""
    nodes = [Node(key="+main", kind="group", **_retry(random, 0.1))]
    for number in range(random.randint(3, 7)):
        groups = [node for node in nodes if node.kind == "group"]
        parent = random.choice(groups).key
        key = f"{parent}+{number}"
        siblings = [node.key for node in nodes if node.parent == parent]
        upstream = tuple(siblings[-1:]) if random.random() < 0.6 else ()
        if random.random() < 0.3:
            node = Node(key=key, parent=parent, kind="group", upstream=upstream, **_retry(random, 0.4))
        else:
            node = Node(key=key, parent=parent, upstream=upstream, **_task_fields(random))
        if random.random() < 0.15:
            node = _with(node, on_failure=fragment(random, f"{key}^error"))
        if find_cycle([*nodes, node]) is None:
            nodes.append(node)
    return tuple(nodes)


def fragment(random: Random, prefix: str) -> tuple[Node, ...]:
    """A few tasks that are added while the workflow runs."""
    group = Node(key=prefix, kind="group", **_retry(random, 0.2))
    count = random.randint(0, 2)
    return (
        group,
        *(Node(key=f"{prefix}+{number}", parent=prefix, **_task_fields(random)) for number in range(count)),
    )


def _task_fields(random: Random) -> dict[str, Any]:
    fields: dict[str, Any] = {"operator": NOOP if random.random() < 0.08 else WORK, **_retry(random, 0.3)}
    if random.random() < 0.2:
        fields["pool"], fields["pool_slots"] = random.choice((("narrow", 1), ("wide", 1), ("wide", 2)))
    if random.random() < 0.1:
        fields["priority"] = random.randint(1, 5)
    if random.random() < 0.1:
        fields["timeout_seconds"] = 15.0
    if random.random() < 0.1:
        fields["max_active_per_workflow"] = 1
    if random.random() < 0.1:
        fields["past"] = Past(
            with_downstream=random.random() < 0.4,
            skips_manual=random.random() < 0.3,
            before_skipping=random.random() < 0.3,
        )
    if random.random() < 0.05:
        fields["cleans_up"] = True
    if random.random() < 0.2:
        fields["calls_back"] = ("retry", "failed")
    if random.random() < 0.06:
        fields["deferral"] = Deferral(trigger="a.Trigger", timeout_seconds=random.choice((None, 5.0)))
    return fields


def _retry(random: Random, chance: float) -> dict[str, Any]:
    if random.random() >= chance:
        return {}
    return {"retry": Retry(limit=random.randint(1, 2), delay_seconds=random.choice((0.0, 5.0)))}


def _with(node: Node, **fields: Any) -> Node:
    return Node(**{name: getattr(node, name) for name in node.__struct_fields__} | fields)
