"""Tasks that wait for something: a condition, a command, a file, a moment, a run of another workflow."""
