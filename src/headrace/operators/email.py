"""Sending e-mail: over the connection `smtp_default`, or a server that the environment names."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from mimetypes import guess_type
from pathlib import Path
from typing import Any

from headrace.authoring.dag.connections import Connection
from headrace.authoring.dag.exceptions import AirflowException, AirflowNotFoundException
from headrace.operators.mail_line import MailServer, deliver, server_of_connection, server_of_environment

DEFAULT_CONNECTION = "smtp_default"


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
        deliver(server, sender, everybody, message)


def addresses(value: str | Iterable[str] | None) -> list[str]:
    """The addresses in a list, or in text with commas or semicolons between them."""
    if value is None:
        return []
    parts = [value] if isinstance(value, str) else list(value)
    return [one.strip() for part in parts for one in part.replace(";", ",").split(",") if one.strip()]


def mail_server(conn_id: str | None = None) -> MailServer:
    """The server of a connection; without a name `smtp_default` or else what the environment says."""
    try:
        connection = Connection.get(conn_id or DEFAULT_CONNECTION)
        return server_of_connection(vars(connection), connection.extra_dejson)
    except AirflowNotFoundException:
        if conn_id is not None:
            raise
    return server_of_environment(os.environ)


def _attach(message: EmailMessage, files: Iterable[str], mime_subtype: str) -> None:
    paths = [Path(file) for file in files]
    if paths and mime_subtype == "related":
        message.make_related()
    for path in paths:
        maintype, _, subtype = (guess_type(path.name)[0] or "application/octet-stream").partition("/")
        message.add_attachment(path.read_bytes(), maintype=maintype, subtype=subtype, filename=path.name)
