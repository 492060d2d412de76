"""How user code asks its supervisor for what lives in the database: results, variables, connections."""

from __future__ import annotations

from typing import Any, Protocol


class MissingError(LookupError):
    """The supervisor says that what was asked for does not exist."""


class ChannelError(RuntimeError):
    """The supervisor could not answer, or is gone."""


class Channel(Protocol):
    def ask(self, verb: str, **args: Any) -> Any:
        """The decoded JSON answer. Raises MissingError or ChannelError.

        Verbs and their arguments:
          get_value(task, name="return_value", map_index=None, run_key=None, workflow=None)
              one named result; a mapped task without `map_index` gives the list of its instances' values in order
              (those that have none left out). MissingError if there is none.
          get_values(tasks, name="return_value")   {task: value} for those that have one
          get_length(task)                         how many elements the task's result has to map over
          get_element(task, index)                 {"element": …} of a list, or of a mapped task's instances;
                                                   {"pair": [key, value]} of a dict; {"whole": …} of anything else
          set_value(name, value)                   store a named result of the asking task at once
          get_variable(name) · set_variable(name, value) · delete_variable(name)
          get_connection(name)                     {"conn_id", "conn_type", "host", "login", "password", "port",
                                                    "schema", "extra"}
          get_secret(name)                         a secret of the project
          get_notification()                       how people are told of failures, as the settings say; MissingError
                                                   if they are not told
          mask(values)                             replace these strings in this try's log from now on
        """
        ...
