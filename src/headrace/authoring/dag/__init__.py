"""The Python front end: DAGs, tasks, groups and edges as Airflow's files write them, compiled into definitions.

Imports `definition` and the ground floor. Operators and import paths of other orchestrators build on this room.
"""

from headrace.authoring.dag.connections import Connection
from headrace.authoring.dag.context import Context, get_current_context
from headrace.authoring.dag.dags import DAG, dag
from headrace.authoring.dag.edges import EdgeModifier, Label, chain, chain_linear, cross_downstream
from headrace.authoring.dag.group import TaskGroup
from headrace.authoring.dag.mapped_group import task_group
from headrace.authoring.dag.operator import BaseOperator
from headrace.authoring.dag.params import Param, ParamsDict
from headrace.authoring.dag.rules import DagRunState, State, TaskInstanceState, TriggerRule, WeightRule
from headrace.authoring.dag.taskflow import setup, task, teardown
from headrace.authoring.dag.variables import Variable
from headrace.authoring.dag.xcom_arg import XComArg, literal

__all__ = [
    "DAG",
    "BaseOperator",
    "Connection",
    "Context",
    "DagRunState",
    "EdgeModifier",
    "Label",
    "Param",
    "ParamsDict",
    "State",
    "TaskGroup",
    "TaskInstanceState",
    "TriggerRule",
    "Variable",
    "WeightRule",
    "XComArg",
    "chain",
    "chain_linear",
    "cross_downstream",
    "dag",
    "get_current_context",
    "literal",
    "setup",
    "task",
    "task_group",
    "teardown",
]
