"""What an operator is told about a service: by secrets (`pg.host`), else by parameters (`host`), else by defaults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from headrace.authoring.dig import as_boolean, as_text
from headrace.operators.dig.contract import Job, OperatorError, Params

T = TypeVar("T")
D = TypeVar("D")


class ServiceOptions:
    """Looks each option up under the prefixes of secrets in turn, then among the parameters."""

    def __init__(self, job: Job, params: Params, *prefixes: str) -> None:
        self._job = job
        self._params = params
        self._prefixes = prefixes

    def read(self, key: str, convert: Callable[[Any], T], default: D) -> T | D:
        given = self._params.read(key, convert, default)
        secret = self.secret(key)
        if secret is None:
            return given
        try:
            return convert(secret)
        except ValueError:
            # What was found is a secret and must not be quoted.
            raise OperatorError(f"the secret `{self._prefixes[0]}.{key}` has a value that makes no sense") from None

    def text(self, key: str, default: str | None = None) -> str:
        found = self.read(key, as_text, default)
        if found is None:
            raise OperatorError(f"parameter `{key}` or secret `{self._prefixes[0]}.{key}` is required but not set")
        return found

    def boolean(self, key: str, default: bool) -> bool:
        return self.read(key, as_boolean, default)

    def secret(self, key: str) -> str | None:
        return self._job.secret(*(f"{prefix}.{key}" for prefix in self._prefixes))
