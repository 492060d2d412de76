"""Hands messages in at a mail server: the one of a connection, one that the environment names, or any other."""

from __future__ import annotations

import smtplib
import ssl
from collections.abc import Mapping
from email.message import EmailMessage
from typing import Any, NamedTuple

TIMEOUT_SECONDS = 30.0
_YES = ("1", "true", "t", "yes", "on")


class MailServer(NamedTuple):
    """Where mail is handed in, and who it comes from."""

    host: str
    port: int = 25
    login: str = ""
    password: str = ""
    sender: str = ""
    is_encrypted: bool = False
    """TLS from the first byte on."""
    upgrades: bool = True
    """STARTTLS before anything is said."""
    timeout_seconds: float = TIMEOUT_SECONDS
    is_verbose: bool = False
    """What is said on the line is printed."""


def server_of_connection(connection: Mapping[str, Any], extra: Mapping[str, Any]) -> MailServer:
    """The server that a connection leads to."""
    is_encrypted = not _is_yes(extra.get("disable_ssl", "false"))
    return MailServer(
        host=connection.get("host") or "localhost",
        port=int(connection.get("port") or (465 if is_encrypted else 25)),
        login=connection.get("login") or "",
        password=connection.get("password") or "",
        sender=extra.get("from_email") or "",
        is_encrypted=is_encrypted,
        upgrades=not is_encrypted and not _is_yes(extra.get("disable_tls", "false")),
        timeout_seconds=float(extra.get("timeout") or TIMEOUT_SECONDS),
    )


def server_of_environment(environment: Mapping[str, str]) -> MailServer:
    """The server that Airflow's variables name."""

    def setting(name: str, default: str = "") -> str:
        return environment.get(f"AIRFLOW__SMTP__{name}", default)

    return MailServer(
        host=setting("SMTP_HOST", "localhost"),
        port=int(setting("SMTP_PORT", "25")),
        login=setting("SMTP_USER"),
        password=setting("SMTP_PASSWORD"),
        sender=setting("SMTP_MAIL_FROM") or environment.get("AIRFLOW__EMAIL__FROM_EMAIL", ""),
        is_encrypted=_is_yes(setting("SMTP_SSL", "false")),
        upgrades=_is_yes(setting("SMTP_STARTTLS", "true")),
        timeout_seconds=float(setting("SMTP_TIMEOUT", str(TIMEOUT_SECONDS))),
    )


def deliver(server: MailServer, sender: str, recipients: list[str], message: EmailMessage) -> None:
    """Hand one message in for everybody who is named."""
    with _connected(server) as line:
        line.set_debuglevel(int(server.is_verbose))
        if server.upgrades and not server.is_encrypted:
            line.starttls(context=ssl.create_default_context())
        if server.login:
            line.login(server.login, server.password)
        line.send_message(message, from_addr=sender, to_addrs=recipients)


def _connected(server: MailServer) -> smtplib.SMTP:
    if server.is_encrypted:
        context = ssl.create_default_context()
        return smtplib.SMTP_SSL(server.host, server.port, timeout=server.timeout_seconds, context=context)
    return smtplib.SMTP(server.host, server.port, timeout=server.timeout_seconds)


def _is_yes(value: Any) -> bool:
    return str(value).strip().lower() in _YES
