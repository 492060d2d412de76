"""Where task requests run: the contract, in this process, or in warm forked processes on this machine.

This room imports `handoff` and `logs`. It starts `headrace.runner` as a program and never imports it.
"""

from headrace.executor.contract import Broker, Contents, Executor
from headrace.executor.inline import InlineExecutor
from headrace.executor.local import LocalExecutor
from headrace.executor.options import LocalOptions, Program

__all__ = ["Broker", "Contents", "Executor", "InlineExecutor", "LocalExecutor", "LocalOptions", "Program"]
