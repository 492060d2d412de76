"""What a person can ask for: run, trigger, clear, retry, kill, pause, why. The CLI and the API call the same verbs.

Each verb is imported from its own module, so that a command pays only for what it uses. This room may import
`projects`, `store`, `state`, `timetable`, `agent`, `scheduler`, `executor`, `logs`, `settings` and `clock`.
"""
