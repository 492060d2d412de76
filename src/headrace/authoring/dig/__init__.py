"""The `.dig` front end: Digdag's YAML dialect, includes and directives, compiled into definitions.

Files are compiled when they are loaded; what operators generate while they run is compiled by the same rules as a
fragment. This room imports `definition` and `timetable`, and no JavaScript: a `${…}` is evaluated by the task.
"""

from headrace.authoring.dig.compiling import FAILURE_ALERT, RETRY_QUESTION, compile_fragment
from headrace.authoring.dig.directives import parse_parallel, parse_retry
from headrace.authoring.dig.loading import DigFile, load_dig_file, read_called_workflow
from headrace.authoring.dig.operator_names import operators_of_project
from headrace.authoring.dig.sessions import local_time, neighbours
from headrace.authoring.dig.values import (
    as_boolean,
    as_integer,
    as_list,
    as_map,
    as_seconds,
    as_text,
    is_template,
    shown,
)

__all__ = [
    "FAILURE_ALERT",
    "RETRY_QUESTION",
    "DigFile",
    "as_boolean",
    "as_integer",
    "as_list",
    "as_map",
    "as_seconds",
    "as_text",
    "compile_fragment",
    "is_template",
    "load_dig_file",
    "local_time",
    "neighbours",
    "operators_of_project",
    "parse_parallel",
    "parse_retry",
    "read_called_workflow",
    "shown",
]
