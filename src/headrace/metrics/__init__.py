"""What loops and queues tell about themselves: numbers that cost next to nothing, for whoever wants to read them.

Every room may count. Who serves a process (`actions/`) says whether anybody may read, and looks up what is not counted.
"""

from headrace.metrics.ticks import tick_ended, tick_failed

__all__ = ["tick_ended", "tick_failed"]
