"""Front ends: what users write, compiled into definitions. Each language is a room of its own below this one.

A language is known by its files' suffix. Its loader executes or reads one file and gives back the compiled workflows;
what else the loaded file holds (DAG objects, raw YAML) is for the task runner of the same language.
"""

from headrace.authoring.languages import (
    LoadedFile,
    SlotQuestion,
    TellsSlots,
    ToldSlot,
    language_of,
    load_file,
    suffixes,
    takes_texts,
)

__all__ = [
    "LoadedFile",
    "SlotQuestion",
    "TellsSlots",
    "ToldSlot",
    "language_of",
    "load_file",
    "suffixes",
    "takes_texts",
]
