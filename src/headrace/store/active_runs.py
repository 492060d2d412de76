"""How statements name the runs of a workflow that wait or go on, so that they are found by the index of just these.

In it, those that wait stand in the order in which they start, those of no backfill first: a thousand of them cost no
more than one. SQLite finds it by its very words; on PostgreSQL one state alone says more.
"""

from __future__ import annotations

IS_QUEUED = "run.state = 'queued' [[sqlite: AND run.state IN ('queued', 'running')]]"
IS_RUNNING = "run.state = 'running' [[sqlite: AND run.state IN ('queued', 'running')]]"
