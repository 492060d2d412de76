"""What is kept beside workflows: variables, connections and secrets, sealed at rest, with the keys that seal them.

It may import `settings`, `store` and `logs` (for what makes a name sensitive). User code never runs here.
"""

from headrace.secrets.keyring import Keyring
from headrace.secrets.keys import KeyFile, KeySource, MemoryKeys, NoKeys, SettingKeys, key_source, new_key
from headrace.secrets.local_files import LocalSecrets
from headrace.secrets.names import check_secret_name
from headrace.secrets.vault import Entry, Vault, open_vault

__all__ = [
    "Entry",
    "KeyFile",
    "KeySource",
    "Keyring",
    "LocalSecrets",
    "MemoryKeys",
    "NoKeys",
    "SettingKeys",
    "Vault",
    "check_secret_name",
    "key_source",
    "new_key",
    "open_vault",
]
