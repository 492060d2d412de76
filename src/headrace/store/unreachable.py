"""What to say about a database that cannot be reached: for each reason there is something else to be done."""

from __future__ import annotations

import re
from pathlib import Path

from headrace.errors import StoreUnreachableError

_NAMED = "`--store` or the `store` setting"
# Of a connection that was refused psycopg tells no SQLSTATE, only what the server said. Where that is in another
# language than English, the general hint has to do.
_REFUSALS = (
    (r'database "(?P<name>.+)" does not exist', f"`createdb {{name}}` on its server creates it; else check {_NAMED}"),
    (r'role "(?P<name>.+)" does not exist', f"`createuser {{name}}` on its server creates it; else check {_NAMED}"),
    ("no password supplied", "give the user's password in `~/.pgpass` (mode 0600) or `PGPASSWORD`"),
    (
        "password authentication failed",
        f"check the user in {_NAMED}, and the password there, in `PGPASSWORD` or in `~/.pgpass`",
    ),
)


def server_error(shown: str, text: str) -> StoreUnreachableError:
    """The error about a server that is away, or that refuses the connection."""
    hint = f"check that it runs and that {_NAMED} names it rightly"
    for refusal, advice in _REFUSALS:
        if (found := re.search(refusal, text)) is not None:
            hint = advice.format(**found.groupdict())
            break
    return StoreUnreachableError(f"could not reach the database `{shown}`: {text}", hint=hint)


def file_error(shown: str, text: str, file: Path | None) -> StoreUnreachableError:
    """The error about a file that cannot be opened as a database."""
    if file is not None and file.is_dir():
        return StoreUnreachableError(
            f"could not open the database `{shown}`: it is a folder",
            hint=f"name a file with {_NAMED}, such as `{file / 'headrace.db'}`",
        )
    if "not a database" in text:
        return StoreUnreachableError(
            f"could not open the database `{shown}`: the file is no SQLite database",
            hint=f"name another file with {_NAMED}; one that is not there yet is created by `headrace db upgrade`",
        )
    return StoreUnreachableError(
        f"could not reach the database `{shown}`: {text}",
        hint=f"check that {_NAMED} names it rightly, and who may read and write the file and its folder",
    )


def port_error(shown: str) -> StoreUnreachableError:
    """The error about a URL whose port is no number. `shown` is without its password, so nothing of it is told."""
    host = re.split("[/?]", shown.partition("://")[2])[0].rpartition("@")[2]
    port = host.rpartition("]")[2].partition(":")[2]
    if port and not port.isdecimal():
        return StoreUnreachableError(
            f"cannot use `{shown}` as a store: expected the port to be a number, got: `{port}`",
            hint="use postgresql://USER@HOST:PORT/NAME",
        )
    return StoreUnreachableError(
        f"cannot use `{shown}` as a store: expected the port to be a number",
        hint="in a user's name or password write `@` as `%40`, `:` as `%3A` and `/` as `%2F`",
    )
