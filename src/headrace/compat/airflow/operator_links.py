"""Links from a task to the pages of other systems. Operators may have them; nothing shows them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar


class BaseOperatorLink(ABC):
    """One link of an operator."""

    operators: ClassVar[list[Any]] = []

    @property
    @abstractmethod
    def name(self) -> str:
        """What is written on it."""

    @property
    def xcom_key(self) -> str:
        return f"_link_{type(self).__name__}"

    @abstractmethod
    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        """Where it leads for one task."""
