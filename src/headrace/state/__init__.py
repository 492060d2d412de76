"""What is true of tasks and what follows from it: states, legal moves, trigger rules, growth, retries, advance.

Pure: no I/O, no clock, no randomness. It may import `definition`, `handoff` and `timetable`.
"""

from headrace.state.advance import Advance
from headrace.state.claiming import take
from headrace.state.counting import tally_of
from headrace.state.dates import for_time
from headrace.state.deadlines import (
    RENEWED_BY_ATTEMPT,
    RENEWED_BY_CLEARING,
    RunMoments,
    due_at,
    has_deadline,
    was_met,
)
from headrace.state.deferring import TIMED_OUT, answer_event, is_ended_by
from headrace.state.expansion import MapSource, instance_count, source_keys, source_of
from headrace.state.graph import Graph, Link
from headrace.state.growth import INLINE_QUEUE, Edge, Growth, grow_tasks, new_task
from headrace.state.marking import MARKED
from headrace.state.params import Layers, Left, Position, merge
from headrace.state.past import FINE, PastRules, RunBefore, is_met
from headrace.state.preceding import Links, Tree, around, following, preceding, with_below
from headrace.state.retry import has_try_left, retry_delay_seconds
from headrace.state.rules import NEVER, RULES, Tally, Verdict, decide
from headrace.state.task import (
    FAILURES,
    FINISHED,
    HELD,
    MOVES,
    TIMED,
    UNFINISHED,
    Actor,
    Attempt,
    Event,
    Move,
    State,
    Task,
    accepts,
    check_move,
)
from headrace.state.vetting import vetted

__all__ = [
    "FAILURES",
    "FINE",
    "FINISHED",
    "HELD",
    "INLINE_QUEUE",
    "MARKED",
    "MOVES",
    "NEVER",
    "RENEWED_BY_ATTEMPT",
    "RENEWED_BY_CLEARING",
    "RULES",
    "TIMED",
    "TIMED_OUT",
    "UNFINISHED",
    "Actor",
    "Advance",
    "Attempt",
    "Edge",
    "Event",
    "Graph",
    "Growth",
    "Layers",
    "Left",
    "Link",
    "Links",
    "MapSource",
    "Move",
    "PastRules",
    "Position",
    "RunBefore",
    "RunMoments",
    "State",
    "Tally",
    "Task",
    "Tree",
    "Verdict",
    "accepts",
    "answer_event",
    "around",
    "check_move",
    "decide",
    "due_at",
    "following",
    "for_time",
    "grow_tasks",
    "has_deadline",
    "has_try_left",
    "instance_count",
    "is_ended_by",
    "is_met",
    "merge",
    "new_task",
    "preceding",
    "retry_delay_seconds",
    "source_keys",
    "source_of",
    "take",
    "tally_of",
    "vetted",
    "was_met",
    "with_below",
]
