"""Runs what deferred tasks wait for: holds triggers under a lease, all in one process, and tells what comes of them.

It may import `store`, `handoff`, `logs`, `definition` and from `executor` what waits for messages.
"""

from headrace.triggerer.triggerer import Triggerer, TriggererOptions

__all__ = ["Triggerer", "TriggererOptions"]
