"""A mail server for tests: takes messages over SMTP and keeps them."""

from __future__ import annotations

import socketserver
import threading
from email import message_from_bytes, policy
from typing import Any


class MailBox:
    """A server on a free port of this machine; `messages` is what it was handed so far."""

    def __init__(self) -> None:
        self.messages: list[Any] = []
        self.recipients: list[list[str]] = []
        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    @property
    def environment(self) -> dict[str, str]:
        return {
            "AIRFLOW__SMTP__SMTP_HOST": "127.0.0.1",
            "AIRFLOW__SMTP__SMTP_PORT": str(self.port),
            "AIRFLOW__SMTP__SMTP_STARTTLS": "false",
            "AIRFLOW__SMTP__SMTP_MAIL_FROM": "headrace@example.com",
        }

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[socketserver.StreamRequestHandler]:
        box = self

        class Session(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                self.wfile.write(b"220 ready\r\n")
                recipients: list[str] = []
                while line := self.rfile.readline():
                    word = line[:4].upper()
                    if word == b"RCPT":
                        recipients.append(line.decode().partition("<")[2].partition(">")[0])
                    if word == b"DATA":
                        self.wfile.write(b"354 go on\r\n")
                        box.recipients.append(recipients)
                        box.messages.append(message_from_bytes(self._body(), policy=policy.default))
                        recipients = []
                    self.wfile.write(b"221 bye\r\n" if word == b"QUIT" else b"250 fine\r\n")
                    if word == b"QUIT":
                        return

            def _body(self) -> bytes:
                lines = []
                while (line := self.rfile.readline()) not in (b".\r\n", b""):
                    lines.append(line[1:] if line.startswith(b"..") else line)
                return b"".join(lines)

        return Session
