"""Airflow's import paths without Airflow: an import hook that serves `airflow.*` out of one table.

May import `authoring` and `operators`, and does so only for the names that a file asks for.
"""

from headrace.compat.airflow.finder import install

__all__ = ["install"]
