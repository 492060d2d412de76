"""Random workflows, and everything that may happen to a run of one."""

from __future__ import annotations

from hypothesis import strategies as st
from memory_graph import Engine, retry, workflow

from headrace.definition import NOOP, TRIGGER_RULES, Deferral, Length, Node, Workflow, find_cycle
from headrace.handoff import TaskError
from headrace.state import FINISHED, State, Task

ORDERLY_RULES = ("all_success", "all_done", "none_failed")
"""Over tasks that succeed or fail, these say the same whoever ends first. (A skip and a failure under `all_success`
race: the rule is decided at the first of them.)"""


def retries(draw) -> dict:
    limit = draw(st.sampled_from([0, 0, 0, 1, 2]))
    return {"retry": retry(limit, draw(st.sampled_from([0.0, 10.0])))} if limit else {}


@st.composite
def fragments(draw, prefix: str) -> tuple[Node, ...]:
    """A few tasks that are added at run time."""
    nodes: list[Node] = []
    for index in range(draw(st.integers(1, 3))):
        groups = [node.key for node in nodes if node.kind == "group"]
        kind = draw(st.sampled_from(["task", "task", "group"]))
        nodes.append(
            Node(
                key=f"{prefix}+{index}",
                parent=draw(st.sampled_from([None, *groups])),
                kind=kind,
                operator="work" if kind == "task" else NOOP,
                upstream=tuple(draw(st.sets(st.sampled_from([n.key for n in nodes]), max_size=1)) if nodes else ()),
                **retries(draw),
            )
        )
        if find_cycle(nodes) is not None:
            nodes[-1] = Node(key=nodes[-1].key)
    return tuple(nodes)


@st.composite
def workflows(draw, rules: tuple[str, ...] = TRIGGER_RULES, max_size: int = 8, is_simple: bool = False) -> Workflow:
    """Tasks, groups and mapped tasks with edges in all directions; simple: nothing whose result depends on time."""
    nodes: list[Node] = []
    for index in range(draw(st.integers(1, max_size))):
        nodes.append(draw(_nodes(f"n{index}", tuple(nodes), rules, is_simple)))
    if draw(st.booleans()):
        nodes += draw(_lockstep(tuple(nodes), rules, is_simple))
    return workflow(*nodes, **({} if is_simple else retries(draw)))


@st.composite
def _lockstep(draw, earlier: tuple[Node, ...], rules: tuple[str, ...], is_simple: bool) -> list[Node]:
    """A few tasks that keep pace, somewhere in the tree, and what waits for them."""
    sources = [node.key for node in earlier if node.kind != "group" and node.parent == ""]
    source = draw(st.sampled_from([None, *sources]))
    length = Length(op="literal", length=draw(st.integers(int(is_simple), 3)))
    length = length if source is None else Length(op="result", task=source)
    nodes: list[Node] = []
    for index in range(draw(st.integers(1, 4))):
        before = [node.key for node in nodes]
        upstream = draw(st.lists(st.sampled_from(before), min_size=1, max_size=2, unique=True)) if before else []
        others = [node.key for node in earlier if node.parent == "" and node.kind != "group"]
        if others and draw(st.integers(0, 3)) == 0:
            upstream.append(draw(st.sampled_from(others)))
        if source is not None and not before and source not in upstream:
            upstream.append(source)
        nodes.append(
            Node(
                key=f"g{index}",
                parent="",
                kind="mapped",
                expand=length,
                lockstep="g",
                upstream=tuple(upstream),
                setups=tuple(upstream[:1]) if draw(st.booleans()) else (),
                trigger_rule=draw(st.sampled_from(rules)),
                decides=draw(st.booleans()),
                operator="work",
                **retries(draw),
            )
        )
    return [*nodes, Node(key="after", parent="", upstream=(draw(st.sampled_from(nodes)).key,), operator="work")]


@st.composite
def _nodes(draw, key: str, earlier: tuple[Node, ...], rules: tuple[str, ...], is_simple: bool) -> Node:
    kind = draw(st.sampled_from(["task", "task", "task", "noop", "group", "mapped", "mapped_result"]))
    parent = draw(st.sampled_from(["", *(node.key for node in earlier if node.kind == "group")]))
    upstream: list[str] = []
    for other in draw(st.lists(st.sampled_from(earlier), max_size=3, unique_by=lambda n: n.key)) if earlier else ():
        attempt = Node(key=key, parent=parent, upstream=(*upstream, other.key))
        if find_cycle([*earlier, attempt]) is None:
            upstream.append(other.key)
    sources = [node.key for node in earlier if node.key in upstream and node.kind != "group"]
    fields: dict = {}
    if kind == "mapped" or (kind == "mapped_result" and not sources):
        fields = {"kind": "mapped", "expand": Length(op="literal", length=draw(st.integers(int(is_simple), 3)))}
    elif kind == "mapped_result":
        fields = {"kind": "mapped", "expand": Length(op="result", task=draw(st.sampled_from(sources)))}
    elif kind == "group":
        fields = {"kind": "group"}
    if not is_simple and draw(st.integers(0, 5)) == 0:
        fields["on_failure"] = draw(fragments(f"{key}^error"))
    return Node(
        key=key,
        parent=parent,
        upstream=tuple(upstream),
        setups=tuple(upstream[:1]) if draw(st.booleans()) else (),
        trigger_rule=draw(st.sampled_from(rules)),
        decides=draw(st.booleans()),
        operator=NOOP if kind in ("noop", "group") else "work",
        deferral=draw(deferrals()) if kind == "task" and not is_simple and draw(st.integers(0, 5)) == 0 else None,
        **fields,
        **({} if is_simple and kind == "group" else retries(draw)),
    )


def end_somehow(draw, engine: Engine, task: Task) -> None:
    """One try ends in any way there is."""
    outcome = draw(
        st.sampled_from(["success", "success", "failed", "failed", "skipped", "again", "deferred", "stopped"])
    )
    fields: dict = {}
    if outcome == "success":
        fields["length"] = draw(st.sampled_from([None, 0, 1, 2, 3]))
        extra = draw(st.sampled_from([None, None, None, "growth", "followed", "skipped"]))
        if extra == "growth":
            fields["growth"] = draw(fragments(f"{task.key}^sub"))
        elif extra is not None:
            fields[extra] = tuple(draw(st.sets(st.sampled_from([*engine.graph.nodes]), max_size=3)) - {""})
    elif outcome == "failed":
        fields |= {"error": TaskError(type="E", message="no"), "is_retryable": draw(st.booleans())}
        fields["retry_after_seconds"] = draw(st.sampled_from([None, None, 0.0, 5.0]))
    elif outcome == "again":
        fields |= {"again_after_seconds": draw(st.sampled_from([0.0, 5.0])), "poll_state": {"n": 1}}
    elif outcome == "deferred":
        fields["deferral"] = draw(deferrals())
    engine.end(task, outcome, **fields)


def deferrals():
    """With a time limit, so that a run ends whose trigger never fires."""
    return st.builds(
        Deferral,
        trigger=st.just("a.Trigger"),
        method=st.just("go_on"),
        timeout_seconds=st.sampled_from([0.0, 5.0]),
        ends_in_process=st.booleans(),
    )


def fire_somehow(draw, engine: Engine, task: Task) -> None:
    """The trigger of a task tells anything that a trigger can tell."""
    outcome = draw(st.sampled_from(["", "", "success", "failed", "skipped"]))
    error = TaskError(type="E", message="no") if draw(st.booleans()) else None
    engine.fire(task, outcome=outcome, error=error)


def finish_everything(engine: Engine) -> None:
    """Let whoever has something to do for this attempt do it, until there is nothing left."""
    for _ in range(2_000):
        work = [*engine.claimable, *(task for task in engine.held)]
        if work:
            engine.end(work[0], "success", length=1)
        elif engine.waiting:
            engine.advance(seconds=1_000)
        else:
            return
    raise AssertionError(f"the attempt does not end: {engine.states()}")


def clearable(engine: Engine) -> list[Task]:
    return [task for task in engine.graph.live if task.state is not State.NONE or task.kind == "group"]


def final_states(engine: Engine) -> dict[str, str]:
    assert engine.root.state in FINISHED
    return engine.states() | {"": str(engine.root.state)}
