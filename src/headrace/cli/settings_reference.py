"""The reference of all settings: `python -m headrace.cli.settings_reference > docs/reference/settings.md`."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.settings import FILE_NAME, HOME_VARIABLE, SettingDoc, describe_settings

_INTRODUCTION = f"""# Settings

Generated from the code by `python -m headrace.cli.settings_reference`.

Settings are read from `{FILE_NAME}` in the home folder, and from environment variables, which win:

```toml
store = "postgresql://user@host/headrace"

[agent]
slots = 8

[projects]
sales = "~/workflows/sales"
```

An environment variable is the setting's name in capitals behind `HEADRACE_`, with two underscores where the name has a
dot. A list is written with commas. A name that does not exist is an error wherever it is written. The home folder can
be set by `{HOME_VARIABLE}` only. Relative paths are meant from the home folder."""

_SECTIONS = {
    "": "General",
    "agent": "Agents",
    "scheduler": "Schedulers",
    "triggerer": "Triggerers",
    "metrics": "Metrics",
    "parser": "Loading workflow files",
    "limits": "Limits",
    "notification": "Notifications",
    "secrets": "Variables, connections and secrets",
}


def settings_reference() -> str:
    """The whole page."""
    settings = describe_settings()
    parts = [_INTRODUCTION]
    for section, title in _SECTIONS.items():
        parts.append(f"## {title}\n\n{_table(one for one in settings if _section(one) == section)}")
    return "\n\n".join(parts) + "\n"


def _section(setting: SettingDoc) -> str:
    return setting.name.rpartition(".")[0]


def _table(settings: Iterable[SettingDoc]) -> str:
    rows = [f"| `{one.name}` | `{_variable(one)}` | {one.type} | {one.default} | {one.doc} |" for one in settings]
    return "\n".join(["| setting | variable | value | default | meaning |", "| --- | --- | --- | --- | --- |", *rows])


def _variable(setting: SettingDoc) -> str:
    """`projects` is a table: each of its entries has a variable of its own."""
    return "HEADRACE_PROJECTS__NAME" if setting.name == "projects" else setting.variable


if __name__ == "__main__":
    print(settings_reference(), end="")
