"""Random `.dig` workflows: the same seed gives the same text."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import yaml

Body = dict[str, Any]

THEMES = ("order", "failures", "retries", "parameters", "growth", "everything")
LETTERS = "abcd"
"""The names of parameters. All of them have a value from the top on, because a name that is unknown fails its task."""


def generate(seed: int) -> tuple[str, str]:
    """The name and the text of a workflow of about four to a dozen tasks, around one theme."""
    theme = THEMES[seed % len(THEMES)]
    body = _Author(random.Random(seed), theme).write()
    return f"{theme}_{seed}", yaml.safe_dump(body, sort_keys=False, width=110)


def generate_resumed(seed: int) -> tuple[str, str]:
    """A workflow in which something often fails at first, to be resumed."""
    body = _Author(random.Random(seed), "resumed").write()
    return f"resumed_{seed}", yaml.safe_dump(body, sort_keys=False, width=110)


def generate_many(first: int, count: int) -> Iterator[tuple[str, str]]:
    """One workflow for each seed."""
    return (generate(seed) for seed in range(first, first + count))


class _Author:
    def __init__(self, dice: random.Random, theme: str) -> None:
        self._dice = dice
        self._theme = theme
        self._number = 0
        self._budget = dice.randint(4, 9)

    def write(self) -> Body:
        top: Body = {"_export": {letter: f"{letter}0" for letter in LETTERS}}
        top |= self._group_directives(may_retry=True)
        return top | self._children(depth=0, may_retry="_retry" not in top, is_parallel="_parallel" in top)

    # ---- groups ----------------------------------------------------------------------------------------------------

    def _children(self, depth: int, may_retry: bool, is_parallel: bool) -> Body:
        children: Body = {}
        wanted = self._dice.randint(2, 4)
        while len(children) < wanted and (self._budget > 0 or not children):
            name = self._new_name()
            body = self._child(depth, may_retry)
            if is_parallel and children and self._chance(0.3):
                how_many = 1 + self._chance(0.3) * (len(children) > 1)
                body["_after"] = sorted(self._dice.sample(sorted(children), how_many))
            if not is_parallel and self._chance(0.3 if self._about("order") else 0.08):
                body["_background"] = True
            if self._chance(0.05):
                body["_disable"] = True
            children[name] = body
        return children

    def _child(self, depth: int, may_retry: bool) -> Body:
        if depth < 3 and self._budget > 1 and self._chance(0.35):
            return self._group(depth, may_retry)
        # Digdag 0.9 copies generated tasks when their group is retried, besides generating them anew.
        if self._about("growth") and depth < 3 and may_retry and self._chance(0.45):
            return self._growing(depth, may_retry)
        return self._task(depth, may_retry)

    def _group(self, depth: int, may_retry: bool) -> Body:
        body = self._group_directives(may_retry)
        if self._chance(0.4 if self._about("parameters") else 0.1):
            body["_export"] = self._values()
        children = self._children(depth + 1, may_retry and "_retry" not in body, "_parallel" in body)
        return body | children

    def _group_directives(self, may_retry: bool) -> Body:
        body: Body = {}
        if self._chance(0.5 if self._about("order") else 0.3):
            body["_parallel"] = True
        if may_retry and self._about("retries") and self._chance(0.35):
            body["_retry"] = self._retry()
        if self._about("failures") and self._chance(0.4):
            body["_error"] = self._handler()
        return body

    # ---- tasks -----------------------------------------------------------------------------------------------------

    def _task(self, depth: int, may_retry: bool) -> Body:
        self._budget -= 1
        if self._chance(0.06):
            return self._dice.choice([{"echo>": "hello ${a}"}, {"fail>": "no ${b}"}])
        body: Body = self._work()
        if self._about("retries") and self._chance(0.35):
            body["_retry"] = self._retry()
        if self._about("failures") and self._chance(0.2):
            body["_check"] = self._handler()
        if self._about("failures") and self._chance(0.25):
            body["_error"] = self._handler()
        if self._about("growth") and depth < 3 and self._budget > 0 and may_retry and self._chance(0.25):
            body["_do"] = self._subtasks(depth, may_retry and "_retry" not in body)
        return body

    def _work(self) -> Body:
        operator = "plain>" if self._chance(0.15) else "work>"
        body: Body = {operator: "fail" if self._chance(0.12 if self._theme != "parameters" else 0.04) else "ok"}
        if (self._about("retries") or self._theme == "resumed") and self._chance(0.35):
            body["fails"] = self._dice.randint(1, 3)
        elif self._chance(0.08):
            body["polls"] = self._dice.randint(1, 2)
        if self._chance(0.6 if self._about("parameters") else 0.15):
            body |= self._parameters()
        return body

    def _parameters(self) -> Body:
        body: Body = {}
        if self._chance(0.7):
            body |= {f"store_{letter}": value for letter, value in self._values().items()}
        if self._chance(0.15):
            body["resets"] = self._dice.sample(LETTERS, 1)
        if self._chance(0.2):
            body["_export"] = self._values()
        if self._chance(0.25):
            body["e"] = "${a}-${b}"
        if self._chance(0.15):
            body[self._dice.choice(LETTERS)] = "own"
        if "resets" in body and f"store_{body['resets'][0]}" not in body:
            # What is reset must be there again, for the names in expressions.
            body[f"store_{body['resets'][0]}"] = "again"
        return body

    def _growing(self, depth: int, may_retry: bool) -> Body:
        self._budget -= 1
        kind = self._dice.choice(["loop>", "for_each>", "if>", "if>"])
        body: Body = {}
        if self._about("retries") and may_retry and self._chance(0.3):
            body["_retry"] = self._retry()
        inner = self._subtasks(depth, may_retry and "_retry" not in body)
        if kind == "if>":
            body |= {kind: self._dice.choice([True, "${a == 'a0'}"]), "_do": inner}
            return body | ({"_else_do": self._subtasks(depth, False)} if self._chance(0.3) else {})
        body |= {kind: self._dice.randint(1, 3) if kind == "loop>" else {"x": ["p", "q"]}, "_do": inner}
        if self._chance(0.4):
            body["_parallel"] = True
        return body

    def _subtasks(self, depth: int, may_retry: bool) -> Body:
        if self._chance(0.5):
            return self._task(3, may_retry)
        return self._group(depth + 1, may_retry)

    def _handler(self) -> Body:
        """A body for `_error` and `_check`."""
        if self._chance(0.5):
            return self._work()
        names = [self._new_name() for _ in range(self._dice.randint(1, 3))]
        parallel: Body = {"_parallel": True} if self._chance(0.3) else {}
        return parallel | {name: self._work() for name in names}

    # ---- dice ------------------------------------------------------------------------------------------------------

    def _retry(self) -> Any:
        limit = self._dice.randint(1, 3)
        return self._dice.choice([limit, limit, str(limit), {"limit": limit, "interval": self._dice.randint(0, 1)}])

    def _values(self) -> Body:
        letters = self._dice.sample(LETTERS, self._dice.randint(1, 2))
        other = self._dice.choice(LETTERS)
        return {
            letter: self._dice.choice([f"{letter}{self._number}", f"${{{other}}}{self._number}"]) for letter in letters
        }

    def _about(self, theme: str) -> bool:
        return self._theme in (theme, "everything") or (self._theme == "resumed" and theme in ("order", "parameters"))

    def _chance(self, probability: float) -> bool:
        return self._dice.random() < probability

    def _new_name(self) -> str:
        self._number += 1
        return f"+t{self._number}"
