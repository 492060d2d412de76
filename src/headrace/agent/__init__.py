"""Claims tasks under leases, drives one executor, commits results and advances runs.

It may import `store`, `state`, `executor`, `handoff`, `logs`, `clock` and `settings`.
"""

from headrace.agent.agent import Agent, AgentOptions
from headrace.agent.broker import Broker
from headrace.agent.place import is_alive, place

__all__ = ["Agent", "AgentOptions", "Broker", "is_alive", "place"]
