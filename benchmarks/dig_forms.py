"""W11: what it costs to write W1 and W2 as `.dig` files, against their Python forms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks import workloads
from benchmarks.bench import Bench
from benchmarks.comparing import Form, compare

_CHAIN = 50
_DIG = "bench.dig"


def measure(bench: Bench, store: str, rounds: int) -> Iterator[dict[str, Any]]:
    """Chains of every kind against a Python one, `sh>` against `BashOperator`, and `for_each>` against mapped tasks."""
    for forms in (_chains(bench), _shells(bench), _fans(bench, 500), _fans(bench, 1000)):
        for name, figures in compare(forms, rounds):
            yield {"workload": f"W11/{name}", "store": store, "mode": "process", **figures}


def _chains(bench: Bench) -> dict[str, Form]:
    python = Form(bench, workloads.python_chain(_CHAIN, "process"))
    return {"chain-python": python} | {f"chain-{one}": _chain(bench, one) for one in ("py", "sh", "echo")}


def _shells(bench: Bench) -> dict[str, Form]:
    return {"chain-bash": Form(bench, workloads.bash_chain(_CHAIN)), "chain-sh-again": _chain(bench, "sh")}


def _chain(bench: Bench, operator: str) -> Form:
    return Form(bench, workloads.dig_chain(_CHAIN, operator), _DIG)


def _fans(bench: Bench, count: int) -> dict[str, Form]:
    mapped = Form(bench, workloads.python_fan(count, "process", is_mapped=True))
    return {f"fan-{count}-mapped": mapped, f"fan-{count}-for_each": Form(bench, workloads.dig_fan(count), _DIG)}
