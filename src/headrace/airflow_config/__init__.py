"""Airflow's configuration as users have it: environment variables and `airflow.cfg`, with old and new spellings.

The ground floor: it imports only `errors`. Settings take aliases from it, DAG files read it through `conf`.
"""

from headrace.airflow_config.aliases import Alias, aliased_settings, check_read_options, notices
from headrace.airflow_config.defaults import default_of, is_core_section, known_options
from headrace.airflow_config.reading import AirflowOptions, Given, read_options
from headrace.airflow_config.renamed import RENAMED, spellings

__all__ = [
    "RENAMED",
    "AirflowOptions",
    "Alias",
    "Given",
    "aliased_settings",
    "check_read_options",
    "default_of",
    "is_core_section",
    "known_options",
    "notices",
    "read_options",
    "spellings",
]
