"""Other orchestrators’ import paths, resolved to our own classes."""
