"""Collects the mistakes of a file, so that its author learns of all of them at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from headrace.errors import DefinitionError


class SeveralMistakes(DefinitionError):
    """The first mistake of several; `detail` has a line for each of the others."""

    def __init__(self, mistakes: list[DefinitionError]) -> None:
        first, *others = mistakes
        super().__init__(first.message, hint=first.hint, file=first.file, line=first.line)
        self.mistakes = mistakes
        self.detail = "\n".join(["also:", *(f"  {_line(one)}" for one in others)])


class Mistakes:
    """Notes mistakes where the work can go on without what was wrong."""

    def __init__(self) -> None:
        self._noted: list[DefinitionError] = []

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note what goes wrong inside, and go on behind it."""
        try:
            yield
        except DefinitionError as mistake:
            self._noted += mistake.mistakes if isinstance(mistake, SeveralMistakes) else [mistake]

    def raise_any(self) -> None:
        """Raise what was noted, in the order of the file's lines as far as they are known."""
        mistakes = sorted(self._noted, key=lambda mistake: (mistake.file or "", mistake.line or 0))
        if mistakes:
            raise SeveralMistakes(mistakes) if len(mistakes) > 1 else mistakes[0]


def _line(mistake: DefinitionError) -> str:
    return str(mistake).replace("\nhint: ", ", ")
