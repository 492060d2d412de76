"""Runs servers until SIGINT or SIGTERM; a second signal does not wait for them."""

from __future__ import annotations

import logging
import signal
import socket
import threading
from collections.abc import Iterable
from pathlib import Path

import click

from headrace.actions.serving import Serving, leave_with_thread
from headrace.cli.interrupts import listening
from headrace.cli.log_lines import show_log_lines
from headrace.errors import UsageError
from headrace.settings import ProjectFolder, Settings

drain_option = click.option(
    "--drain-seconds", type=click.FloatRange(0),
    help="How long running tasks may go on after a signal; else `agent.drain_seconds`.",
)  # fmt: skip

metrics_option = click.option(
    "--metrics-port", type=click.IntRange(0, 65_535), metavar="PORT",
    help="Serve metrics to Prometheus on this port; else `metrics.port`. 0 takes any that is free.",
)  # fmt: skip


def serve(serving: Serving, status: str) -> None:
    """Start, say so in one line, wait for a signal, drain."""
    show_log_lines(logging.INFO)
    for notice in serving.notices:
        click.echo(f"warning: {notice}", err=True)
    # Through a socket, because a handler must not touch locks that the interrupted thread may hold.
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
    threading.excepthook = leave_with_thread
    with listening():
        serving.start()
        click.echo(status, err=True)
        ours.recv(1)
        signal.set_wakeup_fd(-1)
        click.echo("stopping: running tasks may finish; once more ends it at once", err=True)
        serving.stop()


def project_folders(texts: Iterable[str], settings: Settings) -> list[ProjectFolder]:
    """What a command is to watch: the folders that it was given, else those of the settings."""
    folders = [project_folder(text) for text in texts] or list(settings.projects)
    names = [folder.name for folder in folders]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"two folders are called project `{twice}`", hint="name one as `--projects NAME=PATH`")
    return folders


def project_folder(text: str) -> ProjectFolder:
    """`NAME=PATH`, or a folder that gives the project its name."""
    name, equals, path = text.partition("=")
    folder = Path(path if equals else text).expanduser().absolute()
    if not folder.is_dir():
        raise UsageError(f"expected a folder with workflows, but `{folder}` is none")
    name = name.strip() if equals else folder.name
    if not name:
        raise UsageError(f"expected a project as `NAME=PATH`, got: `{text}`")
    return ProjectFolder(name, folder)
