"""Task logs: where each try's log file lies, how output gets into it without secrets, and how it is read back.

This room imports nothing of ours but the ground floor and `settings`.
"""

from headrace.logs.masking import USUAL_RULES, Masker, MaskingRules, hidden, is_sensitive, sensitive_values
from headrace.logs.paths import log_folder, log_name, log_path
from headrace.logs.pump import LogPump, LogStream
from headrace.logs.reading import follow, read_log
from headrace.logs.writing import LogFile, Output

__all__ = [
    "USUAL_RULES",
    "LogFile",
    "LogPump",
    "LogStream",
    "Masker",
    "MaskingRules",
    "Output",
    "follow",
    "hidden",
    "is_sensitive",
    "log_folder",
    "log_name",
    "log_path",
    "read_log",
    "sensitive_values",
]
