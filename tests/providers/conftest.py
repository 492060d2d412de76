"""Real provider packages of Airflow against real servers on this machine.

These tests need an environment with the packages, but without Airflow; in others they are skipped:

    headrace providers install sftp ssh http postgres smtp slack docker 'amazon[aiobotocore]'
    pip install 'headrace[providers-test]'
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import textwrap
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from headrace.actions.provider_packages import installed_providers
from headrace.testing.mail_box import MailBox

NEEDED = {"sftp", "ssh", "http", "postgres", "smtp", "slack", "docker", "amazon"}
HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    missing = NEEDED - {one.name for one in installed_providers()}
    if missing:
        reason = f"provider packages are not installed: {', '.join(sorted(missing))}"
        for item in items:
            if HERE in item.path.parents:
                item.add_marker(pytest.mark.skip(reason=reason))


class Flow:
    """Writes a file with one DAG and runs it by the real command, with a home and connections of its own."""

    def __init__(self, folder):
        self.folder = folder
        self.environ = {**os.environ, "HEADRACE_HOME": str(folder / "home"), "OUT": str(folder / "out.jsonl")}

    def connect(self, name, **fields):
        self.environ[f"AIRFLOW_CONN_{name.upper()}"] = json.dumps(fields)

    def run(self, body, head=""):
        """Run the body of a `with DAG(...)` block; the run must succeed. Tasks tell by `tell` what they saw."""
        start = """\
            import json, os
            from datetime import timedelta
            from airflow.sdk import DAG, task

            @task
            def tell(name, value):
                with open(os.environ["OUT"], "a") as file:
                    print(json.dumps([name, value]), file=file)

            """
        text = textwrap.dedent(start) + textwrap.dedent(head)
        text += "\nwith DAG('flow', schedule=None):\n" + textwrap.indent(textwrap.dedent(body), "    ")
        file = self.folder / "flow.py"
        file.write_text(text)
        return self.run_file(file)

    def run_file(self, file):
        self.headrace("run", str(file))
        out = Path(self.environ["OUT"])
        return dict(json.loads(line) for line in out.read_text().splitlines()) if out.exists() else {}

    def headrace(self, *arguments):
        command = [sys.executable, "-m", "headrace.cli", *arguments]
        done = subprocess.run(command, env=self.environ, cwd=self.folder, capture_output=True, text=True, timeout=180)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return done


@pytest.fixture
def flow(tmp_path):
    return Flow(tmp_path)


@pytest.fixture
def ssh_server(tmp_path):
    """A server for files below a folder and for commands; its user is `ada` with the password `secret`."""
    import asyncssh

    class Login(asyncssh.SSHServer):
        def password_auth_supported(self):
            return True

        def validate_password(self, username, password):
            return (username, password) == ("ada", "secret")

    async def answer(process):
        shell = await asyncio.create_subprocess_shell(process.command, stdout=asyncio.subprocess.PIPE)
        output, _ = await shell.communicate()
        process.stdout.write(output.decode())
        process.exit(shell.returncode)

    folder = tmp_path / "served"
    folder.mkdir()
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def listen():
        return await asyncssh.listen(
            "127.0.0.1",
            0,
            server_factory=Login,
            server_host_keys=[asyncssh.generate_private_key("ssh-ed25519")],
            sftp_factory=lambda chan: asyncssh.SFTPServer(chan, chroot=str(folder)),
            process_factory=answer,
        )

    server = asyncio.run_coroutine_threadsafe(listen(), loop).result(30)
    server.folder, server.port = folder, server.sockets[0].getsockname()[1]
    yield server

    async def close():
        server.close()
        await server.wait_closed()

    asyncio.run_coroutine_threadsafe(close(), loop).result(30)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(30)
    loop.close()


@pytest.fixture
def ssh_flow(flow, ssh_server):
    login = {"host": "127.0.0.1", "port": ssh_server.port, "login": "ada", "password": "secret"}
    extra = {"no_host_key_check": True, "known_hosts": "none"}
    flow.connect("sftp_default", conn_type="sftp", **login, extra=extra)
    flow.connect("ssh_default", conn_type="ssh", **login, extra=extra)
    flow.served = ssh_server.folder
    return flow


@pytest.fixture
def web_server():
    """Answers with what it was asked; `requests` is a list of methods, paths and bodies."""
    requests = []

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            requests.append((self.command, self.path, body))
            text = b"ok" if self.path.startswith("/services/") else json.dumps([self.command, self.path, body]).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_POST = do_GET

        def log_message(self, *words):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    server.requests = requests
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def mail_box():
    box = MailBox()
    yield box
    box.close()


@pytest.fixture
def object_store():
    """The address of something that speaks S3."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()
