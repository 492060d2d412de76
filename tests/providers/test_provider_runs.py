"""Operators, sensors, triggers, decorators and notifiers of provider packages do their work on our engine."""

from __future__ import annotations

import shutil
from pathlib import Path
from urllib.parse import urlsplit

EXAMPLE = Path(__file__).parents[2] / "examples" / "mission" / "sftp_sensor.py"


def test_the_sensor_of_the_mission_finds_its_file(ssh_flow):
    (ssh_flow.served / "root").mkdir()
    (ssh_flow.served / "root" / "test").write_text("here")
    shutil.copy(EXAMPLE, ssh_flow.folder)
    ssh_flow.run_file(ssh_flow.folder / EXAMPLE.name)


def test_sftp(ssh_flow):
    (ssh_flow.folder / "local.txt").write_text("hello")
    told = ssh_flow.run(
        f"""
        put = SFTPOperator(
            task_id="put", local_filepath="{ssh_flow.folder}/local.txt", remote_filepath="/data/in.txt",
            operation="put", create_intermediate_dirs=True, ssh_conn_id="sftp_default",
        )
        poked = SFTPSensor(task_id="poked", path="/data/in.txt", mode="reschedule", poke_interval=1)
        deferred = SFTPSensor(task_id="deferred", path="/data", file_pattern="in.*", deferrable=True, poke_interval=1)

        @task.sftp_sensor(path="/data/in.txt", poke_interval=1)
        def decorated(label, files_found):
            return [label, files_found]

        @task
        def listed():
            return SFTPHook().list_directory("/data")

        names, found = listed(), decorated(label="new")
        put >> [poked, deferred, found] >> names
        tell("listed", names) >> tell("found", found)
        """,
        head="""
        from airflow.providers.sftp.hooks.sftp import SFTPHook
        from airflow.providers.sftp.operators.sftp import SFTPOperator
        from airflow.providers.sftp.sensors.sftp import SFTPSensor
        """,
    )
    files = ["/data/in.txt"]
    assert told == {
        "listed": ["in.txt"],
        "found": {"files_found": files, "decorator_return_value": ["new", files]},
    }
    assert (ssh_flow.served / "data" / "in.txt").read_text() == "hello"


def test_ssh(ssh_flow):
    told = ssh_flow.run(
        """
        answer = SSHOperator(task_id="answer", ssh_conn_id="ssh_default", command="echo $((6 * 7)) {{ dag.dag_id }}")
        tell("answer", answer.output)
        """,
        head="from airflow.providers.ssh.operators.ssh import SSHOperator",
    )
    assert told["answer"] in ("NDIgZmxvdwo=", "42 flow\n")


def test_http(flow, web_server):
    flow.connect("http_default", conn_type="http", host="127.0.0.1", port=web_server.server_port)
    told = flow.run(
        """
        common = {"data": "x={{ dag.dag_id }}", "log_response": True}
        plain = HttpOperator(task_id="plain", endpoint="plain", **common)
        later = HttpOperator(task_id="later", endpoint="later", deferrable=True, **common)
        sensor = HttpSensor(task_id="sensor", endpoint="there", response_check=lambda answer: "there" in answer.text)
        async_sensor = HttpSensor(task_id="async_sensor", endpoint="later_there", deferrable=True, poke_interval=1)
        [sensor, async_sensor] >> plain
        tell("plain", plain.output) >> tell("later", later.output)
        """,
        head="""
        from airflow.providers.http.operators.http import HttpOperator
        from airflow.providers.http.sensors.http import HttpSensor
        """,
    )
    assert told == {"plain": '["POST", "/plain", "x=flow"]', "later": '["POST", "/later", "x=flow"]'}
    assert ("GET", "/there", "") in web_server.requests


def test_postgres(flow, postgres_url):
    url = urlsplit(postgres_url)
    flow.connect(
        "postgres_default", conn_type="postgres", host=url.hostname, port=url.port, login=url.username,
        password=url.password, schema=url.path.strip("/"),
    )  # fmt: skip
    told = flow.run(
        """
        make = SQLExecuteQueryOperator(
            task_id="make", conn_id="postgres_default",
            sql=["create table t (n int)", "insert into t values (1), (%(two)s)"], parameters={"two": 2},
        )
        check = SQLCheckOperator(task_id="check", conn_id="postgres_default", sql="select count(*) = 2 from t")
        wait = SqlSensor(task_id="wait", conn_id="postgres_default", sql="select max(n) from t", poke_interval=1)

        @task.sql(conn_id="postgres_default")
        def total(column):
            return f"select sum({column}) from t -- {{{{ dag.dag_id }}}}"

        @task
        def insert():
            PostgresHook().insert_rows("t", [(3,), (4,)], target_fields=["n"])
            return PostgresHook().get_first("select count(*), sum(n) from t")

        found, inserted = total("n"), insert()
        make >> [check, wait] >> found >> inserted
        tell("total", found) >> tell("inserted", inserted)
        """,
        head="""
        from airflow.providers.common.sql.operators.sql import SQLCheckOperator, SQLExecuteQueryOperator
        from airflow.providers.common.sql.sensors.sql import SqlSensor
        from airflow.providers.postgres.hooks.postgres import PostgresHook
        """,
    )
    assert told == {"total": [[3]], "inserted": [4, 10]}


def test_smtp(flow, mail_box):
    flow.connect(
        "smtp_default", conn_type="smtp", host="127.0.0.1", port=mail_box.port,
        extra={"disable_ssl": True, "disable_tls": True, "from_email": "headrace@example.com"},
    )  # fmt: skip
    flow.run(
        """
        notifier = SmtpNotifier(to="ops@example.com", subject="{{ ti.task_id }} is done", html_content="<b>fine</b>")
        EmailOperator(
            task_id="mail", to="ada@example.com", subject="Run of {{ dag.dag_id }}", html_content="<p>Hello</p>",
            on_success_callback=notifier,
        )
        """,
        head="""
        from airflow.providers.smtp.notifications.smtp import SmtpNotifier
        from airflow.providers.smtp.operators.smtp import EmailOperator
        """,
    )
    assert [(one["To"], one["Subject"]) for one in mail_box.messages] == [
        ("ada@example.com", "Run of flow"),
        ("ops@example.com", "mail is done"),
    ]


def test_slack(flow, web_server):
    flow.connect(
        "slack_hook", conn_type="slackwebhook", host=f"http://127.0.0.1:{web_server.server_port}/services",
        password="T0/B0/secret",
    )  # fmt: skip
    flow.run(
        """
        SlackWebhookOperator(
            task_id="post", slack_webhook_conn_id="slack_hook", message="run of {{ dag.dag_id }}",
            on_success_callback=send_slack_webhook_notification(slack_webhook_conn_id="slack_hook", text="done"),
        )
        """,
        head="""
        from airflow.providers.slack.notifications.slack_webhook import send_slack_webhook_notification
        from airflow.providers.slack.operators.slack_webhook import SlackWebhookOperator
        """,
    )
    bodies = [body for _, path, body in web_server.requests if path == "/services/T0/B0/secret"]
    assert len(bodies) == 2 and "run of flow" in bodies[0] and "done" in bodies[1]


def test_sql_to_slack(flow, web_server, postgres_url):
    url = urlsplit(postgres_url)
    flow.connect("db", conn_type="postgres", host=url.hostname, port=url.port, login=url.username, schema=url.path[1:])
    flow.connect(
        "slack_hook", conn_type="slackwebhook", host=f"http://127.0.0.1:{web_server.server_port}/services",
        password="T0/B0/secret",
    )  # fmt: skip
    flow.run(
        """
        SqlToSlackWebhookOperator(
            task_id="tell", sql_conn_id="db", slack_webhook_conn_id="slack_hook", sql="select {{ 6 * 7 }} as answer",
            slack_message="{{ dag.dag_id }}: {{ results_df.answer[0] }}",
        )
        """,
        head="from airflow.providers.slack.transfers.sql_to_slack_webhook import SqlToSlackWebhookOperator",
    )
    assert "flow: 42" in web_server.requests[0][2]


def test_amazon(flow, object_store):
    flow.connect(
        "aws_default", conn_type="aws", login="key", password="secret",
        extra={"region_name": "eu-west-1", "endpoint_url": object_store},
    )  # fmt: skip
    told = flow.run(
        """
        bucket = S3CreateBucketOperator(task_id="bucket", bucket_name="lake")
        put = S3CreateObjectOperator(task_id="put", s3_bucket="lake", s3_key="in/{{ dag.dag_id }}.txt", data="hello")
        poked = S3KeySensor(task_id="poked", bucket_key="s3://lake/in/flow.txt", poke_interval=1)
        deferred = S3KeySensor(
            task_id="deferred", bucket_name="lake", bucket_key="in/*", wildcard_match=True, deferrable=True,
            poke_interval=1,
        )
        listed = S3ListOperator(task_id="listed", bucket="lake", prefix="in/")

        @task
        def read():
            return S3Hook().read_key("in/flow.txt", "lake")

        text = read()
        bucket >> put >> [poked, deferred] >> listed >> text
        tell("listed", listed.output) >> tell("text", text)
        """,
        head="""
        from airflow.providers.amazon.aws.hooks.s3 import S3Hook
        from airflow.providers.amazon.aws.operators.s3 import (
            S3CreateBucketOperator, S3CreateObjectOperator, S3ListOperator,
        )
        from airflow.providers.amazon.aws.sensors.s3 import S3KeySensor
        """,
    )
    assert told == {"listed": ["in/flow.txt"], "text": "hello"}
