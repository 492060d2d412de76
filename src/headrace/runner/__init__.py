"""In the task process: load the user's file, run one task of it, report. Also the warm parent that is forked for it.

A task process knows no database and no settings; it speaks to its supervisor over a socket and to nobody else. This
room imports `handoff` and `authoring`; a language's task runner is named in `programs.py` and imported when it is used.
Nothing is imported here, so that a warm parent can decide what comes first.
"""
