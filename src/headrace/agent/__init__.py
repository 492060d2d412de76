"""Claims tasks under leases, drives one executor, commits results and advances runs.

It may import `store`, `state`, `executor`, `handoff`, `logs`, `processes`, `clock` and `settings`.
"""

from headrace.agent.agent import Agent
from headrace.agent.broker import Broker
from headrace.agent.options import AgentOptions
from headrace.agent.processors import MachineProcessors, Processors

__all__ = ["Agent", "AgentOptions", "Broker", "MachineProcessors", "Processors"]
