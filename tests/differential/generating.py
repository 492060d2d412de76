"""Random descriptions of DAGs (see `building`): the same seed gives the same description."""

from __future__ import annotations

import random
from collections.abc import Iterator

from building import Description

RULES = (
    *("all_success", "all_failed", "all_done", "all_done_min_one_success", "all_skipped", "one_success", "one_failed"),
    *("one_done", "none_failed", "none_failed_min_one_success", "none_skipped", "always"),
)
"""All but `all_done_setup_success`, which teardowns have and nobody chooses."""

THEMES = ("rules", "branches", "circuits", "mapping", "groups", "mapped_groups", "setups", "everything")


def describe(seed: int) -> Description:
    """A DAG of four to a dozen tasks around one theme."""
    theme = THEMES[seed % len(THEMES)]
    return {"id": f"{theme}_{seed}", "parts": _Author(random.Random(seed), theme).write()}


class _Author:
    def __init__(self, dice: random.Random, theme: str) -> None:
        self._dice = dice
        self._theme = theme
        self._number = 0
        self._after_setup: set[str] = set()
        """Parts that are setups: whoever follows one directly must have the rule `all_success`."""
        self._unlinkable: set[str] = set()
        """Parts that nothing may follow: teardowns."""
        self._lists: list[str] = []
        """Parts outside of mapped groups whose result can be mapped over."""

    def write(self) -> list[Description]:
        parts: list[Description] = []
        count = self._dice.randint(4, 8)
        while len(parts) < count:
            parts += self._next([part["id"] for part in parts])
        _aim_branches(parts, self._dice)
        return parts

    def _next(self, earlier: list[str]) -> list[Description]:
        if self._theme in ("groups", "everything") and self._dice.random() < 0.3:
            return [self._group(earlier)]
        if self._theme == "setups" and self._dice.random() < 0.15:
            return [{"id": self._new_id("g"), "parts": self._scope([]), "after": self._some(earlier, at_most=2)}]
        if self._theme in ("mapped_groups", "everything") and self._dice.random() < 0.35:
            return self._with_elements(self._group(earlier, is_mapped=True))
        if self._theme in ("mapping", "everything") and self._dice.random() < 0.45:
            return self._with_elements(self._task(earlier))
        if self._theme in ("setups", "everything") and self._dice.random() < 0.35:
            return self._scope(earlier)
        return [self._task(earlier)]

    # ---- tasks -----------------------------------------------------------------------------------------------------

    def _task(self, earlier: list[str], *, in_mapped: bool = False) -> Description:
        part: Description = {"id": self._new_id("t"), **self._work(in_mapped)}
        part["after"] = self._some(earlier, at_most=3)
        part["rule"] = self._rule(part["after"])
        if part.get("empty") or self._dice.random() >= 0.15:
            return part
        return part | {"retries": 1, "does": self._dice.choice(["flaky", "flaky", "fail"])}

    def _work(self, in_mapped: bool) -> Description:
        chance = self._dice.random()
        if self._theme in ("branches", "everything", "groups", "mapped_groups") and chance < 0.25:
            return {"choose": None} | ({"otherwise": None} if in_mapped else {})
        if self._theme in ("circuits", "everything") and chance < 0.4:
            return {"go_on": self._dice.random() < 0.3, "to_the_end": self._dice.random() < 0.6}
        if chance > 0.93:
            return {"empty": True}
        return {"does": "element" if in_mapped and self._dice.random() < 0.5 else self._outcome()}

    def _outcome(self) -> str:
        return self._dice.choices(["ok", "fail", "skip"], [6, 2, 2])[0]

    def _rule(self, after: list[str]) -> str:
        if self._after_setup.intersection(after) or self._dice.random() < 0.45:
            return "all_success"
        return self._dice.choice(RULES)

    # ---- mapping and groups ----------------------------------------------------------------------------------------

    def _with_elements(self, part: Description) -> list[Description]:
        """The part, mapped over a list; sometimes over the result of a task that comes before it."""
        part.pop("choose", None), part.pop("otherwise", None), part.pop("go_on", None), part.pop("to_the_end", None)
        if part.pop("empty", False) or ("does" not in part and "parts" not in part):
            part["does"] = "element"
        elif "parts" not in part and "retries" not in part:
            part["does"] = self._dice.choice(["element", "element", "ok"])
        chance = self._dice.random()
        if chance < 0.4:
            return [part | {"map": self._elements()}]
        if chance < 0.6 and self._lists:
            return self._mapped_over(part, self._dice.choice(self._lists), [])
        source = {"id": self._new_id("s"), "does": self._outcome(), "gives": self._elements(), "after": []}
        return self._mapped_over(part, source["id"], [source])

    def _mapped_over(self, part: Description, source: str, before: list[Description]) -> list[Description]:
        if part.get("rule") == "always":
            part["rule"] = "all_done"  # Airflow refuses to map a task that waits for nothing over a result
        _forbid_always(part)
        if "parts" not in part:
            self._lists.append(part["id"])
        return [*before, part | {"map": source}]

    def _elements(self) -> list[str]:
        return [self._outcome() for _ in range(self._dice.choice([0, 1, 2, 2, 3]))]

    def _group(self, earlier: list[str], *, is_mapped: bool = False) -> Description:
        inside: list[Description] = []
        group_id = self._new_id("g")
        for _ in range(self._dice.randint(1 if is_mapped else 0, 4)):
            known = [part["id"] for part in inside]
            outside = [one for one in earlier if self._dice.random() < 0.2]
            inside.append(self._task(known or outside, in_mapped=is_mapped))
        _aim_branches(inside, self._dice)
        return {"id": group_id, "parts": inside, "after": self._some(earlier, at_most=2, setups=False)}

    # ---- setups and teardowns --------------------------------------------------------------------------------------

    def _scope(self, earlier: list[str]) -> list[Description]:
        """A setup, some tasks that need it, and its teardown."""
        setup = {"id": self._new_id("up"), "does": self._outcome(), "after": self._some(earlier, at_most=2)}
        setup |= {"setup": True, "rule": self._rule(setup["after"])}
        self._after_setup.add(setup["id"])
        inside: list[Description] = []
        for _ in range(self._dice.randint(1, 3)):
            known = [part["id"] for part in inside]
            after = self._some(known, at_most=2) or [setup["id"]]
            inside.append({"id": self._new_id("t"), "does": self._outcome(), "after": after, "rule": self._rule(after)})
        teardown = {
            "id": self._new_id("down"),
            "does": self._outcome(),
            "teardown_of": [setup["id"]],
            "fails_run": self._dice.random() < 0.4,
            "after": self._some([part["id"] for part in inside], at_most=2) or [inside[-1]["id"]],
        }
        self._unlinkable.add(teardown["id"])
        return [setup, *inside, teardown]

    def _some(self, ids: list[str], *, at_most: int, setups: bool = True) -> list[str]:
        allowed = [one for one in ids if one not in self._unlinkable and (setups or one not in self._after_setup)]
        return sorted(
            self._dice.sample(allowed, min(len(allowed), self._dice.randint(0 if len(ids) < 3 else 1, at_most)))
        )

    def _new_id(self, letter: str) -> str:
        self._number += 1
        return f"{letter}{self._number}"


def _forbid_always(part: Description) -> None:
    for inner in part.get("parts", ()):
        if inner.get("rule") == "always":
            inner["rule"] = "all_done"


def _aim_branches(parts: list[Description], dice: random.Random) -> None:
    """Let branches choose among what directly follows them."""
    for part in parts:
        for choice in ("choose", "otherwise"):
            if choice in part and part[choice] is None:
                followers = [other["id"] for other in parts if part["id"] in other.get("after", ())]
                fewest = 1 if followers and dice.random() < 0.85 else 0
                part[choice] = sorted(dice.sample(followers, dice.randint(fewest, len(followers))))


def describe_many(first: int, count: int) -> Iterator[Description]:
    """One description for each seed."""
    return (describe(seed) for seed in range(first, first + count))
