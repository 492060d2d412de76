"""What an operator may set: `$HEADRACE_HOME/headrace.toml`, overridden by environment variables.

    [agent]                   HEADRACE_AGENT__SLOTS=8
    slots = 8

Where neither says anything, an option of Airflow's that means the same counts (`AIRFLOW__CORE__PARALLELISM=8`).

A name that does not exist is an error wherever it is written, so that a typing mistake is not a silent default.
"""

from __future__ import annotations

import os
import re
import tomllib
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, NamedTuple

from headrace.airflow_config import AirflowOptions, aliased_settings, check_read_options, notices, read_options
from headrace.errors import SettingsError, did_you_mean

FILE_NAME = "headrace.toml"
PREFIX = "HEADRACE_"
HOME_VARIABLE = "HEADRACE_HOME"
NO_SETTINGS = ("HEADRACE_TASK_", "HEADRACE_VAR_", "HEADRACE_CONN_")
"""Variables with these prefixes tell a task about itself (and a task may call `headrace`), or are its variables and
connections."""


def _doc(text: str, *, shown: str | None = None, minimum: float | None = None) -> dict[str, Any]:
    """What the reference says about a field; `shown` stands for a default that depends on the machine."""
    return {"doc": text, "shown": shown, "minimum": minimum}


def _setting(default: Any, doc: str, *, shown: str | None = None, minimum: float | None = None) -> Any:
    """A field with a default and its documentation."""
    metadata = _doc(doc, shown=shown, minimum=minimum)
    if callable(default):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata)


def _default_slots() -> int:
    return 4 * (os.cpu_count() or 1)


@dataclass(frozen=True, slots=True)
class ProjectFolder:
    """A folder of workflow files that is one project."""

    name: str
    path: Path

    @property
    def root(self) -> str:
        """The folder as the store knows it."""
        return str(self.path.absolute())


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    slots: int = _setting(
        _default_slots, "How many tasks one agent runs at the same time.", shown="four per CPU", minimum=1
    )
    queues: tuple[str, ...] = _setting(("default",), "The queues that the agent takes tasks from.")
    lease_seconds: float = _setting(
        15.0, "How long an agent may be silent before its tasks are given up for lost.", minimum=0.1
    )
    renew_seconds: float | None = _setting(
        None, "How often an agent renews its leases.", shown="a third of `agent.lease_seconds`", minimum=0.01
    )
    kill_grace_seconds: float = _setting(5.0, "Between asking a task's processes to end and killing them.", minimum=0)
    drain_seconds: float = _setting(
        30.0,
        "How long running tasks may go on when their agent is told to stop; then they are stopped and handed back.",
        minimum=0,
    )
    errand_timeout_seconds: float = _setting(
        300.0,
        "How long a callback, or anything else that runs for a task or run without being a task, may take.",
        minimum=1,
    )
    isolation: Literal["process", "reuse"] = _setting(
        "process", "Whether each try gets a fresh process, or a process may serve many tries."
    )
    passes_store_password: bool = _setting(
        False,
        "Whether the environment of tasks keeps the password in `HEADRACE_STORE`, for tasks that call `headrace`.",
    )
    reuse_limit: int = _setting(100, "How many tries a reused process serves before it is replaced.", minimum=1)
    max_zygotes: int = _setting(
        32, "How many warm parent processes, one per revision of a file, an agent keeps.", minimum=1
    )

    @property
    def renewal_seconds(self) -> float:
        """How often leases are renewed: as set, or a third of the lease."""
        return self.lease_seconds / 3 if self.renew_seconds is None else self.renew_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerSettings:
    poll_seconds: float = _setting(
        5.0, "How often the scheduler looks for work that no event has announced.", minimum=0.01
    )
    rescue_seconds: float = _setting(
        1.0, "How often the scheduler looks for agents that are silent for too long.", minimum=0.01
    )
    retention_days: int | None = _setting(
        None,
        "Finished runs older than this are deleted with their logs, and so are versions of files that no run needs.",
        shown="never",
        minimum=1,
    )
    max_runs_per_tick: int = _setting(100, "How many runs of one workflow are started in one go.", minimum=1)
    check_slas: bool = _setting(True, "Whether tasks that are not done within their `sla` are recorded and told.")


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggererSettings:
    capacity: int = _setting(1000, "How many triggers one triggerer runs at the same time.", minimum=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsSettings:
    port: int | None = _setting(
        None, "Where each long-running process serves its metrics to Prometheus.", shown="not at all", minimum=0
    )
    host: str = _setting("127.0.0.1", "The address on which it listens for that.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ParserSettings:
    timeout_seconds: float = _setting(30.0, "How long loading one workflow file may take.", minimum=0.1)
    memory_mb: int = _setting(2048, "How much memory loading one workflow file may take.", minimum=64)
    processes: int = _setting(2, "How many workflow files are loaded at the same time.", minimum=1)
    safe_mode: bool = _setting(True, "Load only Python files that mention Airflow or Headrace and a DAG or an asset.")
    ignore_syntax: Literal["glob", "regexp"] = _setting(
        "glob", "How `.airflowignore` is written: `glob` like `.gitignore`, or `regexp`."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsSettings:
    default_pool_slots: int = _setting(128, "Slots of the pool that tasks use unless they name another.", minimum=1)
    max_map_length: int = _setting(
        100_000, "How many elements a result may have that tasks are mapped over.", minimum=1
    )
    max_value_bytes: int = _setting(50 * 1024 * 1024, "The largest result of a task, as JSON.", minimum=1)
    max_archive_bytes: int = _setting(
        512 * 1024 * 1024, "How large the files of a pushed project may be, before they are compressed.", minimum=1
    )
    max_tasks_per_run: int = _setting(
        10_000, "How many tasks a run may have; a task that would add more of them fails.", minimum=1
    )
    run_seconds: float | None = _setting(
        None, "How long a run may take; an older one is stopped and has failed.", shown="without end", minimum=1
    )
    task_seconds: float | None = _setting(
        None,
        "How long a task may take from its first start, with all its waits and tries; its run is stopped.",
        shown="without end",
        minimum=1,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationSettings:
    type: Literal["http", "mail", "shell"] | None = _setting(
        None, "How people are told of failed workflows that ask for it.", shown="not at all"
    )
    retries: int = _setting(10, "How often a notification is sent again after it failed.", minimum=0)
    min_wait_seconds: float = _setting(1.0, "The first wait before it is sent again; each one is doubled.", minimum=0)
    max_wait_seconds: float = _setting(30.0, "The longest of these waits.", minimum=0)
    http_url: str | None = _setting(None, "Where `http` sends a notification, as JSON.")
    http_method: str = _setting("POST", "The method of that request.")
    http_headers: tuple[str, ...] = _setting((), "Headers of that request, each as `Name: value`.")
    shell_command: str | None = _setting(None, "What `shell` runs; it reads the notification as JSON from its input.")
    shell_timeout_seconds: float = _setting(30.0, "How long that command may take.", minimum=0.1)
    mail_host: str | None = _setting(None, "The server over which `mail` sends a notification.")
    mail_port: int = _setting(587, "The port of that server.", minimum=1)
    mail_security: Literal["starttls", "tls", "none"] = _setting(
        "starttls", "Whether the connection to it is upgraded, encrypted from the first byte, or not encrypted."
    )
    mail_username: str | None = _setting(None, "Who logs in there.", shown="nobody")
    mail_password: str | None = _setting(None, "With which password.")
    mail_from: str | None = _setting(None, "The sender of these mails.")
    mail_to: tuple[str, ...] = _setting((), "Their recipients.")
    mail_cc: tuple[str, ...] = _setting((), "Who gets a copy.")
    mail_bcc: tuple[str, ...] = _setting((), "Who gets a copy without being named.")
    mail_subject: str = _setting("Headrace notification", "Their subject.")


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretsSettings:
    keys: tuple[str, ...] = _setting(
        (), "Keys that seal variables, connections and secrets: the first one seals, all of them open.", shown="none"
    )
    key_file: Path | None = field(
        default=None,
        metadata=_doc(
            "A file with one key a line, in place of `secrets.keys`.", shown="`secrets.key` beside a SQLite database"
        ),
    )
    local_dir: Path = field(
        default=Path("~/.config/headrace/secrets"),
        metadata=_doc("Where `headrace secrets --local` keeps one file per secret."),
    )
    sensitive_names: tuple[str, ...] = _setting(
        (), "Parts of names, besides the usual ones, that make a variable or a field a secret.", shown="none"
    )
    hide_sensitive: bool = _setting(True, "Whether logs show `***` in place of variables and fields with such names.")
    shortest_masked: int = _setting(5, "Shorter values are not masked in logs.", minimum=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    home: Path = field(
        metadata=_doc("The folder of the settings file, the SQLite database and the logs.", shown="~/.headrace")
    )
    store: str = field(
        metadata=_doc("URL of the database: `sqlite:///…` or `postgresql://…`.", shown="sqlite:///{home}/headrace.db")
    )
    projects: tuple[ProjectFolder, ...] = field(
        metadata=_doc("Names and folders of projects, one a line.", shown="{home}/workflows if it exists")
    )
    logs_dir: Path = field(metadata=_doc("Where task logs are written.", shown="{home}/logs"))
    agent: AgentSettings = field(default_factory=AgentSettings)
    scheduler: SchedulerSettings = field(default_factory=SchedulerSettings)
    triggerer: TriggererSettings = field(default_factory=TriggererSettings)
    metrics: MetricsSettings = field(default_factory=MetricsSettings)
    parser: ParserSettings = field(default_factory=ParserSettings)
    limits: LimitsSettings = field(default_factory=LimitsSettings)
    notification: NotificationSettings = field(default_factory=NotificationSettings)
    secrets: SecretsSettings = field(default_factory=SecretsSettings)
    notices: tuple[str, ...] = ()
    """What Airflow's configuration asks for and has no effect here."""

    @property
    def revisions_dir(self) -> Path:
        """Where pushed revisions are unpacked on this machine."""
        return self.home / "revisions"


class SettingValue(NamedTuple):
    """One setting as it is."""

    name: str
    value: str
    source: str
    """The variable or file that set it, or `default`."""


class SettingDoc(NamedTuple):
    """One line of the reference."""

    name: str
    variable: str
    type: str
    default: str
    doc: str


_SECTIONS: dict[str, Any] = {
    "agent": AgentSettings,
    "scheduler": SchedulerSettings,
    "triggerer": TriggererSettings,
    "metrics": MetricsSettings,
    "parser": ParserSettings,
    "limits": LimitsSettings,
    "notification": NotificationSettings,
    "secrets": SecretsSettings,
}
_PROJECTS = "projects."


class _Known(NamedTuple):
    name: str
    type: Any
    field: Field[Any]


class _Given(NamedTuple):
    value: Any
    label: str
    """The name as the user wrote it."""
    file: str | None
    is_text: bool = False
    """Whether it comes from an environment variable, which can say everything only as text."""


def load_settings(home: Path | None = None, environ: Mapping[str, str] = os.environ) -> Settings:
    """The settings of a home folder and an environment. Raises a SettingsError that says what is wrong and where."""
    folder = Path(home or environ.get(HOME_VARIABLE) or "~/.headrace").expanduser().absolute()
    given = _given(folder, environ)
    known = {setting.name: setting for setting in _known_settings()}
    values: dict[str, Any] = {}
    for name, one in given.items():
        if not name.startswith(_PROJECTS):
            _refuse_unknown(name, one, known)
            values[name] = _checked(known[name], one, folder)
    sections = {name: make(**_of_section(name, values)) for name, make in _SECTIONS.items()}
    return Settings(
        home=folder,
        store=_checked_store(values.get("store", f"sqlite:///{folder}/headrace.db"), given.get("store")),
        logs_dir=values.get("logs_dir", folder / "logs"),
        projects=_projects(given, folder),
        notices=tuple(notices(read_options(environ))),
        **sections,
    )


def setting_values(home: Path | None = None, environ: Mapping[str, str] = os.environ) -> list[SettingValue]:
    """Every setting as it is now, with what has set it."""
    settings = load_settings(home, environ)
    given = _given(settings.home, environ)
    values = [SettingValue("home", str(settings.home), HOME_VARIABLE if environ.get(HOME_VARIABLE) else "default")]
    values += [
        SettingValue(f"projects.{one.name}", str(one.path), _source(given.get(f"projects.{one.name}")))
        for one in settings.projects
    ]
    for known in _known_settings():
        section, _, name = known.name.rpartition(".")
        value = getattr(getattr(settings, section) if section else settings, name)
        values.append(SettingValue(known.name, _show(value), _source(given.get(known.name))))
    return values


def describe_settings() -> list[SettingDoc]:
    """Every setting with its documentation, in the order of the reference."""
    return [
        SettingDoc(
            name=known.name,
            variable=HOME_VARIABLE if known.name == "home" else _variable(known.name),
            type="a table of paths" if known.name == "projects" else _describe_type(known.type),
            default=known.field.metadata["shown"] or _show(known.field.default),
            doc=known.field.metadata["doc"],
        )
        for known in (*_top_settings(("home", "projects")), *_known_settings())
    ]


def _given(home: Path, environ: Mapping[str, str]) -> dict[str, _Given]:
    ours = {**_from_file(home / FILE_NAME), **_from_environ(environ)}
    return {**_from_airflow(read_options(environ), ours), **ours}


def _source(given: _Given | None) -> str:
    if given is None:
        return "default"
    return given.label if given.file is None else f"{given.file} ({given.label})"


def _known_settings() -> Iterator[_Known]:
    yield from _top_settings(("store", "logs_dir"))
    for section, kind in _SECTIONS.items():
        hints = typing.get_type_hints(kind)
        for one in fields(kind):
            yield _Known(f"{section}.{one.name}", hints[one.name], one)


def _top_settings(names: tuple[str, ...]) -> Iterator[_Known]:
    hints = typing.get_type_hints(Settings)
    return (_Known(one.name, hints[one.name], one) for one in fields(Settings) if one.name in names)


def _from_file(path: Path) -> dict[str, _Given]:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        line = re.search(r"line (\d+)", str(error))
        raise SettingsError(
            f"could not read the settings: {error}", file=str(path), line=int(line[1]) if line else None
        ) from None
    except OSError as error:
        raise SettingsError(f"could not read the settings: {error.strerror}", file=str(path)) from None
    given: dict[str, _Given] = {}
    for name, value in content.items():
        if isinstance(value, dict):
            given.update({f"{name}.{key}": _Given(one, f"{name}.{key}", str(path)) for key, one in value.items()})
        elif name in _SECTIONS or name == "projects":
            raise SettingsError(f"expected `{name}` to be a table, got: `{_show(value)}`", file=str(path))
        else:
            given[name] = _Given(value, name, str(path))
    return given


def _from_environ(environ: Mapping[str, str]) -> dict[str, _Given]:
    given: dict[str, _Given] = {}
    for variable, text in environ.items():
        if variable.startswith(PREFIX) and variable != HOME_VARIABLE and not variable.startswith(NO_SETTINGS):
            name = variable.removeprefix(PREFIX).lower().replace("__", ".", 1)
            given[name] = _Given(text, variable, None, is_text=True)
    return given


def _from_airflow(options: AirflowOptions, ours: Mapping[str, _Given]) -> dict[str, _Given]:
    check_read_options(options)
    has_projects = any(name.startswith(_PROJECTS) for name in ours)
    return {
        alias.setting: _Given(alias.value, alias.given.label, alias.given.file)
        for alias in aliased_settings(options)
        if alias.value is not None and not (has_projects and alias.setting.startswith(_PROJECTS))
    }


def _refuse_unknown(name: str, given: _Given, known: Mapping[str, _Known]) -> None:
    if name in known:
        return
    if given.is_text:
        hint = did_you_mean(given.label, (HOME_VARIABLE, *map(_variable, known)))
        raise SettingsError(f"unknown setting in the environment: `{given.label}`", hint=hint)
    raise SettingsError(f"unknown setting: `{name}`", hint=did_you_mean(name, (*known, "projects")), file=given.file)


def _of_section(section: str, values: Mapping[str, Any]) -> dict[str, Any]:
    prefix = f"{section}."
    return {name.removeprefix(prefix): value for name, value in values.items() if name.startswith(prefix)}


def _projects(given: Mapping[str, _Given], home: Path) -> tuple[ProjectFolder, ...]:
    folders = []
    for name, one in given.items():
        if name.startswith(_PROJECTS):
            path = _converted(one.value, Path)
            if path is None:
                raise _mismatch(one, "a path", None)
            folders.append(ProjectFolder(name.removeprefix(_PROJECTS), home / path.expanduser()))
    default = home / "workflows"
    if not folders and default.is_dir():
        folders.append(ProjectFolder(default.name, default))
    return tuple(folders)


def _checked(known: _Known, given: _Given, home: Path) -> Any:
    if given.is_text and given.value.strip().lower() in ("", "none") and _allows_none(known.type):
        return None
    kind = _without_none(known.type)
    value = _converted(_parsed(given.value, kind) if given.is_text else given.value, kind)
    minimum = known.field.metadata["minimum"]
    if value is None or (minimum is not None and value < minimum):
        raise _mismatch(given, _describe_type(known.type), minimum)
    return home / value.expanduser() if isinstance(value, Path) else value


def _checked_store(url: str, given: _Given | None) -> str:
    if given is not None and not url.startswith(("sqlite:///", "postgres://", "postgresql://", "postgresql+")):
        raise SettingsError(
            f"expected `{given.label}` to be a URL that begins with `sqlite:///` or `postgresql://`, got: `{url}`",
            file=given.file,
        )
    return url


def _mismatch(given: _Given, expected: str, minimum: float | None) -> SettingsError:
    at_least = "" if minimum is None else f" of at least {minimum:g}"
    return SettingsError(
        f"expected `{given.label}` to be {expected}{at_least}, got: `{_show(given.value)}`", file=given.file
    )


def _parsed(text: str, kind: Any) -> Any:
    """The value of an environment variable as the settings file would have given it."""
    if kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            return text
    if kind is bool:
        return {"true": True, "1": True, "false": False, "0": False}.get(text.strip().lower(), text)
    if typing.get_origin(kind) is tuple:
        return [part.strip() for part in text.split(",") if part.strip()]
    return text


def _converted(value: Any, kind: Any) -> Any:
    """The value as the type wants it, or None if it is of another type."""
    if typing.get_origin(kind) is Literal:
        return value if value in typing.get_args(kind) else None
    if typing.get_origin(kind) is tuple:
        is_list = isinstance(value, list) and value and all(isinstance(item, str) for item in value)
        return tuple(value) if is_list else None
    if isinstance(value, bool):
        return value if kind is bool else None
    if kind is float and isinstance(value, int | float):
        return float(value)
    if kind is Path and isinstance(value, str):
        return Path(value)
    return value if isinstance(value, kind) else None


def _allows_none(kind: Any) -> bool:
    return type(None) in typing.get_args(kind)


def _without_none(kind: Any) -> Any:
    if typing.get_origin(kind) not in (types.UnionType, typing.Union):
        return kind
    return next(part for part in typing.get_args(kind) if part is not type(None))


_TYPE_NAMES = {int: "a whole number", float: "a number", str: "a string", Path: "a path", bool: "true or false"}


def _describe_type(kind: Any) -> str:
    kind = _without_none(kind)
    if typing.get_origin(kind) is Literal:
        return " or ".join(f"`{choice}`" for choice in typing.get_args(kind))
    return "a list of strings" if typing.get_origin(kind) is tuple else _TYPE_NAMES[kind]


def _show(value: Any) -> str:
    if value is None or value is MISSING:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    return ", ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


def _variable(name: str) -> str:
    return PREFIX + name.replace(".", "__").upper()
