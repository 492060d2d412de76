"""Builds the moving parts from the settings: store, executor, agent."""

from __future__ import annotations

import msgspec

from headrace.actions.executors import local_executor
from headrace.agent import Agent, AgentOptions, Broker, MachineProcessors
from headrace.clock import SystemClock
from headrace.definition import Isolation
from headrace.executor import Executor, InlineExecutor, LocalExecutor
from headrace.logs import MaskingRules
from headrace.secrets import Vault, open_vault
from headrace.settings import Settings
from headrace.store import Store
from headrace.triggerer import Triggerer, TriggererOptions


class Parts(msgspec.Struct, frozen=True):
    """A store that is open, with the clock and the settings that everything else is built from."""

    settings: Settings
    store: Store
    clock: SystemClock
    has_own_vault: bool = True
    """Whether variables, connections and secrets are in this store, and not in the one of the settings."""

    @classmethod
    def open(cls, settings: Settings, url: str | None = None, *, has_own_vault: bool = True) -> Parts:
        """Open the store of the settings, or another one by URL."""
        store = Store(url or settings.store, default_pool_slots=settings.limits.default_pool_slots)
        clock = SystemClock()
        clock.offset = store.clock_offset()
        return cls(settings, store, clock, has_own_vault)

    def vault(self) -> Vault:
        """Where variables, connections and secrets are."""
        store = self.store if self.has_own_vault else Store(self.settings.store)
        return open_vault(self.settings, store, self.clock)

    def broker(self) -> Broker:
        """Answers what tasks ask."""
        return Broker(self.store, self.clock, self.settings.notification, self.vault)

    def local_executor(self, slots: int | None = None) -> LocalExecutor:
        """Processes on this machine."""
        return local_executor(self.settings, self.broker(), slots)

    def agent(
        self,
        executor: Executor,
        *,
        slots: int | None = None,
        queues: tuple[str, ...] | None = None,
        attempt_id: int | None = None,
        isolation: Isolation | None = None,
        name: str = "",
    ) -> Agent:
        """An agent that drives this executor."""
        given = self.settings.agent
        options = AgentOptions(
            slots=slots or given.slots,
            queues=queues or given.queues,
            lease_seconds=given.lease_seconds,
            renew_seconds=given.renewal_seconds,
            kill_grace_seconds=given.kill_grace_seconds,
            errand_timeout_seconds=given.errand_timeout_seconds,
            attempt_id=attempt_id,
            isolation=isolation or given.isolation,
            max_tasks_per_run=self.settings.limits.max_tasks_per_run,
            max_map_length=self.settings.limits.max_map_length,
            revisions_dir=self.settings.revisions_dir,
            max_archive_bytes=self.settings.limits.max_archive_bytes,
            name=name,
        )
        inline = InlineExecutor(self.broker())
        logs = self.settings.logs_dir
        return Agent(self.store, self.clock, executor, inline, logs, options, MachineProcessors())

    def triggerer(self, *, attempt_id: int | None = None, name: str = "") -> Triggerer:
        """A triggerer, which costs next to nothing until there is a first trigger."""
        lease = self.settings.agent
        options = TriggererOptions(
            capacity=self.settings.triggerer.capacity,
            lease_seconds=lease.lease_seconds,
            renew_seconds=lease.renewal_seconds,
            poll_seconds=self.settings.scheduler.poll_seconds,
            attempt_id=attempt_id,
            masking=MaskingRules.of(self.settings.secrets),
            name=name,
        )
        return Triggerer(self.store, self.clock, self.broker(), self.settings.logs_dir, options)
