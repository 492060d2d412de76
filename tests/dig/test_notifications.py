"""A failed workflow tells people, in the way that the settings say: over HTTP, by mail, or to a command."""

from __future__ import annotations

import json
import socketserver
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from headrace.agent import Broker
from headrace.definition import Node
from headrace.handoff import Ask, RunContext, Source, TaskRequest
from headrace.settings import NotificationSettings
from headrace.testing.engine import Engine

FAILS = "+a: {fail>: no}"


@pytest.fixture
def start(tmp_path):
    """Starts runs in an engine with these settings for notifications."""
    engines = []

    def start(text: str, **settings):
        engine = Engine(tmp_path, notification=NotificationSettings(**settings))
        engines.append(engine)
        run = engine.start_dig(text)
        engine.settle()
        return engine, run

    yield start
    for engine in engines:
        engine.close()


class Server:
    """Serves in a thread and remembers what it was given."""

    def __init__(self, make, handler) -> None:
        self.received: list = []
        self.answers: list[int] = []
        handler = type("Handler", (handler,), {"owner": self})
        self.server = make(("127.0.0.1", 0), handler)
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


class Web(BaseHTTPRequestHandler):
    def do_PUT(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.owner.received.append((self.path, self.headers["X-Key"], json.loads(body)))
        self.send_response(self.owner.answers.pop(0) if self.owner.answers else 204)
        self.end_headers()

    def log_message(self, *_):
        pass


class Smtp(socketserver.StreamRequestHandler):
    """As much of a mail server as one message needs."""

    def handle(self):
        self.say("220 ready")
        while line := self.rfile.readline().decode().strip():
            if line.upper() == "DATA":
                self.say("354 go on")
                lines = []
                while (line := self.rfile.readline().decode().rstrip("\r\n")) != ".":
                    lines.append(line)
                self.owner.received.append("\n".join(lines))
            elif line.upper().startswith("RCPT"):
                self.owner.received.append(line)
            self.say("250 fine")
            if line.upper() == "QUIT":
                return

    def say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())


@pytest.fixture
def web():
    server = Server(HTTPServer, Web)
    yield server
    server.close()


@pytest.fixture
def smtp():
    server = Server(socketserver.TCPServer, Smtp)
    yield server
    server.close()


def test_without_settings_the_alert_succeeds_and_nobody_is_told(start):
    _, run = start(FAILS)
    assert (run.state, run.states()) == ("failed", {"+main+a": "failed", "+main^failure-alert": "success"})


def test_a_workflow_that_succeeds_alerts_nobody(start, tmp_path):
    _, run = start("+a: {echo>: fine}", type="shell", shell_command=f"cat > {tmp_path}/told")
    assert run.state == "success"
    assert not (tmp_path / "told").exists()


def test_a_command_reads_the_notification(start, tmp_path):
    _, run = start("timezone: Asia/Tokyo\n" + FAILS, type="shell", shell_command=f"cat > {tmp_path}/told")
    told = json.loads((tmp_path / "told").read_text())
    assert told.pop("timestamp")
    assert told.pop("session_uuid")
    assert len(told.pop("revision")) == 64
    assert told == {
        "message": "Workflow session attempt failed",
        "site_id": 0,
        "project_id": 1,
        "project_name": "project",
        "workflow_name": "main",
        "attempt_id": run.attempt_id,
        "session_id": run.id,
        "task_name": "+main^failure-alert",
        "timezone": "Asia/Tokyo",
        "session_time": "2026-02-03T13:05:06+09:00",
    }


def test_a_broken_export_does_not_silence_the_alert(start, tmp_path):
    _, run = start("_export: {x: '${nobody}'}\n+a: {echo>: no}", type="shell", shell_command=f"cat > {tmp_path}/told")
    assert run.states() == {"+main+a": "failed", "+main^failure-alert": "success"}
    assert (tmp_path / "told").exists()


def test_a_web_server_is_asked_again_until_it_takes_the_notification(start, web):
    web.answers = [500, 503]
    url = f"http://127.0.0.1:{web.port}/hook"
    engine, run = start(FAILS, type="http", http_url=url, http_method="PUT", http_headers=("X-Key: sesame-open",))
    assert (run.task("^failure-alert").state, len(web.received)) == ("up_for_reschedule", 1)
    for seconds in (1, 2):
        engine.advance(seconds=seconds)
        engine.settle()
    assert (run.state, run.task("^failure-alert").state) == ("failed", "success")
    assert [(path, key, body["message"]) for path, key, body in web.received] == [
        ("/hook", "sesame-open", "Workflow session attempt failed")
    ] * 3


def test_a_mail_goes_to_everybody(start, smtp):
    start(
        FAILS, type="mail", mail_host="127.0.0.1", mail_port=smtp.port, mail_security="none", mail_from="a@example.com",
        mail_to=("b@example.com", "c@example.com"), mail_bcc=("d@example.com",), mail_subject="Alert",
    )  # fmt: skip
    *recipients, message = smtp.received
    assert [line.lower() for line in recipients] == [f"rcpt to:<{name}@example.com>" for name in "bcd"]
    assert "Subject: Alert: main: Workflow session attempt failed" in message
    assert "To: b@example.com, c@example.com" in message
    assert "d@example.com" not in message
    assert "task_name: +main^failure-alert" in message


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"type": "shell", "shell_command": "exit 3"}, "the command of the notification failed with code 3"),
        (
            {"type": "shell", "shell_command": "sleep 9", "shell_timeout_seconds": 0.1},
            "the command of the notification took longer than 0.1 s",
        ),
        ({"type": "shell"}, "the setting `notification.shell_command` is missing"),
        ({"type": "http"}, "the setting `notification.http_url` is missing"),
        ({"type": "http", "http_url": "file:///etc/passwd"}, "expected the setting `notification.http_url` to begin"),
        ({"type": "http", "http_url": "http://127.0.0.1:1/"}, "could not reach the server of the notification"),
        ({"type": "mail", "mail_host": "127.0.0.1"}, "the setting `notification.mail_from` is missing"),
    ],
)
def test_a_notification_that_cannot_be_sent_fails_its_task_only(start, settings, error):
    _, run = start(FAILS, retries=0, **settings)
    assert (run.state, run.task("^failure-alert").state) == ("failed", "failed")
    assert run.error("^failure-alert").startswith(error)
    assert run.task("+main").error.message == "no"


def test_nobody_but_the_operator_is_told_how(tmp_path):
    broker = Broker(None, notification=NotificationSettings(type="shell", shell_command="secret"))
    answers = {}
    for operator in ("notify", "py"):
        request = TaskRequest(
            task_id=1, fence=1, key="k", node=Node(key="k", operator=operator),
            source=Source(root="/", file="", language="dig"), run=RunContext(project="", workflow=""),
        )  # fmt: skip
        answers[operator] = broker(request, Ask(id=1, verb="get_notification"))
    assert not answers["notify"].is_missing
    assert answers["py"].is_missing


def test_messages_of_a_workflow_itself(start, tmp_path):
    _, run = start(
        "+t: {notify>: 'all is ${word}', _export: {word: well}}", type="shell", shell_command=f"cat > {tmp_path}/told"
    )
    assert run.state == "success"
    assert json.loads((tmp_path / "told").read_text())["message"] == "all is well"
