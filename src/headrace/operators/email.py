"""Sending e-mail: over the connection `smtp_default`, or a server that the environment names."""

from __future__ import annotations

import os
import smtplib
import ssl
from collections.abc import Iterable, Mapping
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from mimetypes import guess_type
from pathlib import Path
from typing import Any, NamedTuple

from headrace.authoring.dag.connections import Connection
from headrace.authoring.dag.exceptions import AirflowException, AirflowNotFoundException

DEFAULT_CONNECTION = "smtp_default"
_TIMEOUT_SECONDS = 30.0
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
    timeout_seconds: float = _TIMEOUT_SECONDS


def send_email(
    to: str | Iterable[str],
    subject: str,
    html_content: str,
    files: Iterable[str] | None = None,
    dryrun: bool = False,
    cc: str | Iterable[str] | None = None,
    bcc: str | Iterable[str] | None = None,
    mime_subtype: str = "mixed",
    mime_charset: str = "utf-8",
    conn_id: str | None = None,
    custom_headers: Mapping[str, str] | None = None,
    from_email: str | None = None,
    **_: Any,
) -> None:
    """Send one message to everybody who is named. Addresses are a list, or text with commas or semicolons."""
    server = mail_server(conn_id)
    recipients = {"To": addresses(to), "Cc": addresses(cc), "Bcc": addresses(bcc)}
    everybody = [address for some in recipients.values() for address in some]
    if not everybody:
        raise AirflowException(f"the e-mail `{subject}` has no recipient")
    sender = from_email or server.sender
    if not sender:
        raise AirflowException(
            f"the e-mail `{subject}` has no sender: set `from_email` in the extra of connection"
            f" `{conn_id or DEFAULT_CONNECTION}`, or AIRFLOW__SMTP__SMTP_MAIL_FROM"
        )
    message = EmailMessage()
    message["Subject"], message["From"], message["Date"] = subject, sender, formatdate(localtime=True)
    message["Message-ID"] = make_msgid()
    for name in ("To", "Cc"):
        if recipients[name]:
            message[name] = ", ".join(recipients[name])
    for name, value in (custom_headers or {}).items():
        message[name] = value
    message.set_content(html_content, subtype="html", charset=mime_charset)
    _attach(message, files or (), mime_subtype)
    if not dryrun:
        _deliver(server, sender, everybody, message)


def addresses(value: str | Iterable[str] | None) -> list[str]:
    """The addresses in a list, or in text with commas or semicolons between them."""
    if value is None:
        return []
    parts = [value] if isinstance(value, str) else list(value)
    return [one.strip() for part in parts for one in part.replace(";", ",").split(",") if one.strip()]


def mail_server(conn_id: str | None = None) -> MailServer:
    """The server of a connection; without a name `smtp_default` or else what the environment says."""
    try:
        return _of_connection(Connection.get(conn_id or DEFAULT_CONNECTION))
    except AirflowNotFoundException:
        if conn_id is not None:
            raise
    return _of_environment(os.environ)


def _of_connection(connection: Any) -> MailServer:
    extra = connection.extra_dejson
    is_encrypted = not _is_yes(extra.get("disable_ssl", "false"))
    return MailServer(
        host=connection.host or "localhost",
        port=int(connection.port or (465 if is_encrypted else 25)),
        login=connection.login or "",
        password=connection.password or "",
        sender=extra.get("from_email") or "",
        is_encrypted=is_encrypted,
        upgrades=not is_encrypted and not _is_yes(extra.get("disable_tls", "false")),
        timeout_seconds=float(extra.get("timeout") or _TIMEOUT_SECONDS),
    )


def _of_environment(environment: Mapping[str, str]) -> MailServer:
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
        timeout_seconds=float(setting("SMTP_TIMEOUT", str(_TIMEOUT_SECONDS))),
    )


def _is_yes(value: Any) -> bool:
    return str(value).strip().lower() in _YES


def _attach(message: EmailMessage, files: Iterable[str], mime_subtype: str) -> None:
    paths = [Path(file) for file in files]
    if paths and mime_subtype == "related":
        message.make_related()
    for path in paths:
        maintype, _, subtype = (guess_type(path.name)[0] or "application/octet-stream").partition("/")
        message.add_attachment(path.read_bytes(), maintype=maintype, subtype=subtype, filename=path.name)


def _deliver(server: MailServer, sender: str, recipients: list[str], message: EmailMessage) -> None:
    with _connected(server) as line:
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
