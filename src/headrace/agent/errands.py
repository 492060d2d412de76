"""The agent's side of errands: takes them for free slots, turns them into requests, records how they ended."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec

from headrace.agent.options import AgentOptions
from headrace.definition import Node
from headrace.handoff import TaskRequest, errand_id, errand_key
from headrace.logs import log_folder, log_name
from headrace.store import (
    ClaimedErrand,
    Definitions,
    Reply,
    Report,
    Requests,
    RunGraph,
    Transaction,
    ask_for_errands,
    claim_errands,
    end_errand,
    held_errands,
)


class Errands:
    """Asks the store only when there may be something to do, so that runs without errands cost nothing."""

    def __init__(self, requests: Requests, logs_root: Path, options: AgentOptions) -> None:
        self._requests = requests
        self._logs_root = logs_root
        self._options = options
        self._may_be_there = True
        self._asked: Reply | None = None

    def expect(self) -> None:
        """Somebody may have written errands: the next claim looks."""
        self._may_be_there = True

    def ask(self, tx: Transaction, now: int, limit: int, attempts: Collection[int] | None) -> None:
        """Ask for errands for up to `limit` free slots; with `attempts` only of these."""
        self._asked = None
        if self._may_be_there and limit > 0:
            self._asked = ask_for_errands(tx, self._options.queues, limit, now, attempts)

    def claim(
        self, tx: Transaction, graph: RunGraph, agent_id: int, limit: int, attempts: Collection[int] | None
    ) -> list[TaskRequest]:
        """Take what was asked for; once more, if the transaction itself has left some."""
        if graph.has_sent_errands:
            self.expect()
            self.ask(tx, graph.now, limit, attempts)
        if self._asked is None:
            return []
        claimed = claim_errands(tx, agent_id, self._asked, graph.now)
        self._may_be_there = len(claimed) == limit
        return [self._request(tx, one) for one in claimed]

    def record(self, tx: Transaction, reports: Sequence[Report], now: int) -> None:
        """Write down how errands ended."""
        for report in reports:
            end_errand(tx, errand_id(report.result.task_id), report.result, report.log, now)
        if reports:
            self._may_be_there = True  # a failed one waits for its next try

    def held(self, tx: Transaction, agent_id: int) -> dict[tuple[int, int], int]:
        """The attempts of what the store says this agent runs, by what stands for task and fence."""
        return {(errand_key(id_), fence): attempt_id for id_, fence, attempt_id in held_errands(tx, agent_id)}

    def _request(self, tx: Transaction, claimed: ClaimedErrand) -> TaskRequest:
        info = self._requests.run(tx, claimed.attempt_id)
        run = info.context
        folder = log_folder(run.project, run.workflow, run.run_key, run.attempt_number)
        name = log_name(f"errand:{claimed.id}", -1, claimed.tries)
        request = TaskRequest(
            task_id=errand_key(claimed.id),
            fence=claimed.fence,
            key=info.version.workflow.root.key,
            try_number=claimed.try_number,
            node=self._node(info.version.workflow.root, claimed),
            source=info.source,
            run=run,
            params={**info.version.workflow.params, **run.params},
            errand=claimed.errand,
            log_path=f"{self._logs_root}/{folder}/{name}",
            kill_grace_seconds=self._options.kill_grace_seconds,
        )
        return self._about_task(tx, request, claimed, info.version_id)

    def _about_task(
        self, tx: Transaction, request: TaskRequest, claimed: ClaimedErrand, version_id: int
    ) -> TaskRequest:
        found = RunGraph(tx, 0).load_with_parents([claimed.task_id]) if claimed.task_id is not None else []
        for task in found:
            node = tx.shared(Definitions).node(tx, version_id, task)
            return msgspec.structs.replace(
                request,
                key=task.key,
                map_index=task.map_index,
                max_tries=task.max_tries,
                node=self._node(node, claimed),
            )
        return request

    def _node(self, node: Node, claimed: ClaimedErrand) -> Node:
        """What an executor looks at: a process of its own, for a limited time."""
        return msgspec.structs.replace(
            node,
            operator=claimed.errand.kind,
            isolation="process",
            timeout_seconds=self._options.errand_timeout_seconds,
        )
