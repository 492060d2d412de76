"""The environment of processes that run user code: without what opens the store or the secrets in it.

User code asks its supervisor for what it needs. A password in its environment would be in every crash report, in the
output of `env`, and in the environment of whatever it starts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_KEYS = (
    "HEADRACE_SECRETS__KEYS",
    "HEADRACE_NOTIFICATION__MAIL_PASSWORD",
    "HEADRACE_NOTIFICATION__HTTP_HEADERS",
    "AIRFLOW__CORE__FERNET_KEY",
    "AIRFLOW__CORE__FERNET_KEY_CMD",
)
_STORES = (
    "HEADRACE_STORE",
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN",
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_ASYNC",
    "AIRFLOW__CORE__SQL_ALCHEMY_CONN",
)
# Greedy: a password may hold an `@` that nobody has escaped.
_PASSWORD = re.compile(r"(?<=://)([^:/@?]*):.*@")
_PASSWORD_OPTION = re.compile(r"(?<=[?&])password=[^&]*&?")


def environment_of_user_code(environ: Mapping[str, str], *, with_store_password: bool = False) -> dict[str, str]:
    """The variables that user code may see. A store's URL stays, so that a task can call `headrace`, but not its
    password; that is left to `~/.pgpass`, unless it is asked for."""
    seen = {name: value for name, value in environ.items() if name not in _KEYS}
    if not with_store_password:
        seen |= {name: without_password(seen[name]) for name in _STORES if name in seen}
    return seen


def without_password(url: str) -> str:
    """The URL of a database as everybody may see it.

    >>> without_password("postgresql://app:hunter22@db:5432/headrace?sslmode=require&password=hunter22")
    'postgresql://app@db:5432/headrace?sslmode=require'
    """
    return _PASSWORD_OPTION.sub("", _PASSWORD.sub(r"\1@", url)).rstrip("?&")
