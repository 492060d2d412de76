"""Other orchestrators' import paths, resolved to our own classes.

May import `authoring` and `operators`. Only processes that load users' files install these paths.
"""
