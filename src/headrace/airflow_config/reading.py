"""What users have set: `AIRFLOW__SECTION__KEY` and, if `AIRFLOW_CONFIG` or `AIRFLOW_HOME` names one, `airflow.cfg`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from headrace.airflow_config.renamed import spellings
from headrace.errors import SettingsError

if TYPE_CHECKING:
    # Imported when there is a file or a command: every task process has this module, and few have either.
    from configparser import ConfigParser

_PREFIX = "AIRFLOW__"
_COMMAND_SUFFIX = "_cmd"
_SECRET_SUFFIX = "_secret"
_COMMAND_SECONDS = 60.0

SENSITIVE_OPTIONS = frozenset(
    (
        *(("database", "sql_alchemy_conn"), ("database", "sql_alchemy_conn_async"), ("core", "fernet_key")),
        *(("celery", "broker_url"), ("celery", "result_backend"), ("celery", "flower_basic_auth")),
        *(("smtp", "smtp_password"), ("api", "secret_key"), ("api_auth", "jwt_secret")),
        *(("sentry", "sentry_dsn"), ("secrets", "backend_kwargs"), ("workers", "secrets_backend_kwargs")),
    )
)
"""Options that may come from a command or a secrets backend, and that are never shown."""


class Given(NamedTuple):
    """An option that somebody has set."""

    section: str
    key: str
    value: str
    label: str
    """How it was written: `AIRFLOW__CORE__PARALLELISM`, `core.parallelism`."""
    file: str | None = None


class AirflowOptions:
    """The options of one environment. `home` is Airflow's home folder, whether or not it exists."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self.home = Path(environ.get("AIRFLOW_HOME") or "~/airflow").expanduser()
        self.file = _config_file(environ)
        self._parsed = _parse(self.file) if self.file is not None else None

    def find(self, section: str, key: str) -> Given | None:
        """What was set for an option, in any of its spellings; the environment wins over the file."""
        names = spellings(section.lower(), key.lower())
        for look in (self._in_environment, self._in_file):
            for one in names:
                if (found := look(*one)) is not None:
                    return found
        return None

    def secret_name(self, section: str, key: str) -> str | None:
        """The name under which a secrets backend has the option, if `…_SECRET` says so."""
        for name in spellings(section.lower(), key.lower()):
            if name in SENSITIVE_OPTIONS:
                given = self._plain(name[0], name[1] + _SECRET_SUFFIX)
                if given is not None:
                    return given.value
        return None

    def everything(self) -> Iterator[Given]:
        """Every option that is set somewhere, as it is written, without running commands."""
        seen: set[tuple[str, str]] = set()
        for name, value in sorted(self._environ.items()):
            section, _, key = name.removeprefix(_PREFIX).lower().partition("__")
            if name.startswith(_PREFIX) and key:
                seen.add((section, key))
                yield Given(section, key, value, name)
        if self._parsed is not None:
            for section in self._parsed.sections():
                for key in self._parsed.options(section):
                    found = None if (section, key) in seen else self._from_file(section, key)
                    if found is not None:
                        yield found

    def _in_environment(self, section: str, key: str) -> Given | None:
        return self._from_environment(section, key) or self._command(self._from_environment, section, key)

    def _in_file(self, section: str, key: str) -> Given | None:
        return self._from_file(section, key) or self._command(self._from_file, section, key)

    def _plain(self, section: str, key: str) -> Given | None:
        return self._from_environment(section, key) or self._from_file(section, key)

    def _from_environment(self, section: str, key: str) -> Given | None:
        name = f"{_PREFIX}{section.replace('.', '_').upper()}__{key.upper()}"
        value = self._environ.get(name)
        return None if value is None else Given(section, key, value, name)

    def _from_file(self, section: str, key: str) -> Given | None:
        if self._parsed is None or not self._parsed.has_option(section, key):
            return None
        from configparser import InterpolationError

        try:
            value = self._parsed.get(section, key)
        except InterpolationError as error:
            raise SettingsError(
                f"could not read `{section}.{key}`: {error.message.splitlines()[0]}",
                hint="a `%` is written as `%%` in this file",
                file=str(self.file),
            ) from None
        return Given(section, key, value.replace("{AIRFLOW_HOME}", str(self.home)), f"{section}.{key}", str(self.file))

    def _command(self, look: Callable[[str, str], Given | None], section: str, key: str) -> Given | None:
        """What the command prints that is set in place of a sensitive option."""
        given = look(section, key + _COMMAND_SUFFIX) if (section, key) in SENSITIVE_OPTIONS else None
        if given is None:
            return None
        import shlex
        import subprocess

        try:
            done = subprocess.run(
                shlex.split(given.value), capture_output=True, text=True, timeout=_COMMAND_SECONDS, check=False
            )
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            raise SettingsError(f"could not run the command of `{given.label}`: {error}", file=given.file) from None
        if done.returncode != 0:
            raise SettingsError(f"the command of `{given.label}` failed with code {done.returncode}", file=given.file)
        return given._replace(key=key, value=done.stdout.strip())


def read_options(environ: Mapping[str, str]) -> AirflowOptions:
    """The options of an environment. SettingsError if the file that it names cannot be read."""
    return AirflowOptions(environ)


def _config_file(environ: Mapping[str, str]) -> Path | None:
    if named := environ.get("AIRFLOW_CONFIG"):
        return Path(named).expanduser()
    if home := environ.get("AIRFLOW_HOME"):
        path = Path(home, "airflow.cfg").expanduser()
        return path if path.is_file() else None
    return None


def _parse(path: Path) -> ConfigParser:
    import configparser

    # No section gives defaults to the others, and a `{AIRFLOW_HOME}` is not ours to interpolate.
    parsed = configparser.ConfigParser(default_section="", strict=False)
    try:
        parsed.read_string(path.read_text(encoding="utf-8"), source=str(path))
    except OSError as error:
        raise SettingsError(f"could not read Airflow's configuration: {error.strerror}", file=str(path)) from None
    except (configparser.Error, UnicodeDecodeError) as error:
        line = getattr(error, "lineno", None)
        reason = str(error).splitlines()[0]
        raise SettingsError(f"could not read Airflow's configuration: {reason}", file=str(path), line=line) from None
    return parsed
