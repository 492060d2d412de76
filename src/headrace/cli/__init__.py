"""The command line: parse, one call into `actions`, print. One file per command in `commands`.

It may import everything below it. Commands are imported when they are called, so that `headrace --help` stays quick.
"""
