"""Operators of cloud vendors against stand-ins that speak their protocols."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from urllib.parse import unquote, urlsplit

import psycopg
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from headrace.operators.dig.aws_signing import AwsKeys, signed
from headrace.operators.dig.web_client import WebRequest
from headrace.testing.web_server import WebServer


def finish(project, task, **request):
    """Call a task until it has ended, as the engine would."""
    state = {}
    for _ in range(20):
        result = project.run(f"+t: {{{task}}}", poll_state=state, **request)
        if result.outcome != "again":
            return result
        state = result.poll_state
    raise AssertionError(f"still waiting: {state}")


# ---- Treasure Data ---------------------------------------------------------------------------------------------------


class TreasureData:
    """Jobs that run during one look and succeed at the next."""

    def __init__(self) -> None:
        self.looks = 0
        self.status = "success"
        self.csv = '1,a\n2,"b, c"\n'
        self.schema = '[["n","int"],["t","string"]]'
        self.keys: dict[str, int] = {}

    def __call__(self, asked):
        assert asked.headers["Authorization"] == "TD1 key"
        kind = asked.path.split("/")[2:4]
        if kind == ["job", "show"]:
            self.looks += 1
            status = "running" if self.looks % 2 else self.status
            return 200, {"status": status, "num_records": 2, "hive_result_schema": self.schema,
                         "debug": {"stderr": "it broke"}}  # fmt: skip
        if kind == ["job", "result"]:
            return 200, self.csv
        if kind == ["connections", "lookup"]:
            return 200, {"id": 9}
        if kind == ["table", "show"]:
            return (200, {"count": 1}) if self.looks else 404
        if "domain_key" in asked.form or asked.headers.get("Content-Type") == "application/json":
            return 200, {"job_id": 77}
        return 200, {}


@pytest.fixture
def td(project, web):
    service = TreasureData()
    service.server = web(service)
    project.answers.secrets = {"td.apikey": "key", "td.endpoint": service.server.url}
    return service


def started(td):
    """The request that began a job."""
    return next(asked for asked in td.server.asked if asked.method == "POST" and "/v3/table/" not in asked.path)


def test_td_runs_a_query_and_keeps_its_result(project, td):
    project.write("q.sql", "SELECT ${n};")
    task = "td>: q.sql, database: db, n: 5, store_last_results: all, download_file: out.csv, preview: true"
    result = finish(project, task)
    assert result.store == {
        "td": {
            "last_job_id": "77",
            "last_job": {"id": "77", "num_records": 2},
            "last_results": [{"n": 1, "t": "a"}, {"n": 2, "t": "b, c"}],
        }
    }
    assert (project.root / "out.csv").read_text() == 'n,t\n1,a\n2,"b, c"\n'
    asked = started(td)
    assert (asked.path, asked.form["query"]) == ("/v3/job/issue/presto/db", "SELECT 5")
    assert len([one for one in td.server.asked if "/job/issue/" in one.path]) == 1


@pytest.mark.parametrize(
    ("options", "query"),
    [
        ("create_table: a.b", 'DROP TABLE IF EXISTS "a"."b";\nCREATE TABLE "a"."b" AS\nSELECT 1'),
        ("insert_into: t", 'INSERT INTO "t"\nSELECT 1'),
        ("create_table: t, engine: hive", "INSERT OVERWRITE TABLE `t`\nSELECT 1"),
        ("insert_into: t, engine: hive, priority: 1, job_retry: 2", "INSERT INTO TABLE `t`\nSELECT 1"),
    ],
)
def test_td_writes_tables(project, td, options, query):
    assert finish(project, f"td>: {{data: SELECT 1;}}, database: db, {options}").outcome == "success"
    assert started(td).form["query"] == query


def test_results_stay_until_others_are_stored(project, td):
    stored = finish(project, "td>: {data: SELECT 1}, database: db, store_last_results: true")
    assert stored.reset == ("td.last_job_id", "td.last_job", "td.last_results")
    assert finish(project, "td>: {data: SELECT 1}, database: db").reset == ("td.last_job_id", "td.last_job")


def test_results_of_td_may_be_long(project, td):
    long = "x" * 10_000
    td.csv = f"1,{long}\n"
    stored = finish(project, "td>: {data: SELECT 1}, database: db, store_last_results: true").store
    assert stored["td"]["last_results"] == {"n": 1, "t": long}
    repeated = finish(project, "td_for_each>: {data: SELECT 1}, database: db, _do: {echo>: '${td.each.n}'}")
    assert repeated.growth[1].export == {"td": {"each": {"n": 1, "t": long}}}


def test_td_sends_a_result_to_a_connection(project, td, caplog):
    project.answers.secrets |= {"pw": "secret"}
    settings = "{bucket: b, password: '${secret:pw}'}"
    task = f"td>: {{data: SELECT 1}}, database: db, result_connection: my conn, result_settings: {settings}"
    assert finish(project, task).outcome == "success"
    form = started(td).form
    assert (form["result_connection_id"], "result" in form) == ("9", False)
    assert json.loads(form["result_connection_settings"]) == {"bucket": "b", "password": "secret"}
    assert [asked.query for asked in td.server.asked if "lookup" in asked.path] == [{"name": "my conn"}]
    text = task.replace(settings, """'{"bucket": "b"}'""")
    td.server.asked.clear()
    finish(project, text)
    assert json.loads(started(td).form["result_connection_settings"]) == {"bucket": "b"}
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR], "no option is unused"
    failed = finish(project, "td>: {data: SELECT 1}, database: db, result_settings: {bucket: b}")
    assert failed.error.message == "`result_settings` is for a `result_connection`, which is not set"


def test_a_table_of_another_database_is_made_there(project, td):
    assert finish(project, "td>: {data: SELECT 1}, database: db, insert_into: other.t").outcome == "success"
    assert td.server.asked[0].path == "/v3/table/create/other/t/log"


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("WITH a AS (SELECT 1)\n-- DIGDAG_INSERT_LINE\nSELECT 2", 'WITH a AS (SELECT 1)\nINSERT INTO "t"\nSELECT 2'),
        ("-- set session x = 1\n-- two\nSELECT 2", '-- set session x = 1\n-- two\nINSERT INTO "t"\nSELECT 2'),
    ],
)
def test_where_td_inserts_its_command(project, td, text, query):
    project.write("q.sql", text)
    finish(project, "td>: q.sql, database: db, insert_into: t")
    assert started(td).form["query"] == query


@pytest.mark.parametrize(
    ("task", "time"),
    [
        ("td>: {data: SELECT 1}", "1770131106"),
        ("td_for_each>: {data: SELECT 1}, _do: {echo>: 1}", "1770131106"),
        ("td_wait>: {data: SELECT true}", "1770131106"),
        ("td_wait_table>: t, rows: 1", None),
    ],
)
def test_which_queries_know_the_session_time(project, td, task, time):
    td.looks, td.schema, td.csv = 2, '[["n","boolean"]]', "true\n"
    assert finish(project, f"{task}, database: db").outcome == "success"
    assert started(td).form.get("scheduled_time") == time


def test_a_td_job_that_fails(project, td):
    td.status = "error"
    failed = finish(project, "td>: {data: SELECT 1}, database: db")
    assert (failed.error.type, failed.error.message) == ("TdJobFailed", "TD job 77 ended as error")
    assert failed.error.traceback == "it broke"


def test_a_td_job_is_begun_once(project, td):
    td.server.answer = lambda asked: (409, {"details": {"conflicts_with": "42"}})
    result = project.run("+t: {td>: {data: SELECT 1}, database: db}")
    assert (result.outcome, result.poll_state["job_id"]) == ("again", "42")


def test_td_is_asked_again_when_it_is_not_well(project, td):
    td.server.answer = lambda asked: 503
    assert project.run("+t: {td>: {data: SELECT 1}, database: db}").again_after_seconds == 1
    td.server.answer = lambda asked: (401, {"message": "bad key"})
    failed = project.run("+t: {td>: {data: SELECT 1}, database: db}")
    assert failed.error.message == "POST /v3/job/issue/presto/db was answered with status 401: bad key"


def test_td_for_each_repeats_its_body_for_each_row(project, td):
    task = "td_for_each>: {data: SELECT 1}, database: db, _parallel: true, _do: {echo>: '${td.each.t}'}"
    growth = finish(project, task).growth
    assert [(node.key, node.export) for node in growth[1:]] == [
        ("+wf+t^sub+td-for-each-0", {"td": {"each": {"n": 1, "t": "a"}}}),
        ("+wf+t^sub+td-for-each-1", {"td": {"each": {"n": 2, "t": "b, c"}}}),
    ]
    assert growth[2].upstream == ()


def test_td_wait_asks_until_the_answer_is_true(project, td):
    td.schema, td.csv = '[["done","boolean"]]', "false\n"
    task = "+t: {td_wait>: {data: SELECT 1}, database: db, interval: 7s}"
    state, waits = {}, []
    for _ in range(6):
        result = project.run(task, poll_state=state)
        state = result.poll_state
        waits.append(result.again_after_seconds)
        td.csv = "true\n" if 7 in waits else "false\n"
    assert (result.outcome, waits.count(7)) == ("success", 1)


def test_td_wait_table_waits_for_the_table_and_for_rows(project, td):
    missing = project.run("+t: {td_wait_table>: t, database: db}")
    assert (missing.outcome, missing.again_after_seconds) == ("again", 30)
    td.looks, td.schema, td.csv = 2, '[["_col0","boolean"]]', "true\n"
    assert project.run("+t: {td_wait_table>: t, database: db}").outcome == "success"
    assert finish(project, "td_wait_table>: t, database: db, rows: 10").outcome == "success"
    assert started(td).form["query"] == 'SELECT count(*) >= 10 FROM (SELECT 1 FROM "t" LIMIT 10) found'


def test_other_td_jobs(project, td, caplog):
    project.answers.secrets |= {"aws.s3.access_key_id": "AK", "aws.s3.secret_access_key": "SK"}
    project.write("load.yml", "in: {type: s3, key: '${secret:aws.s3.access_key_id}'}\n")
    jobs = {
        "td_run>: saved query": "/v3/schedule/run/saved%20query/1770131106",
        "td_run>: 585808": "/v4/queries/585808/jobs",
        "td_load>: load.yml, database: db, table: t": "/v3/job/issue/bulkload/db",
        "td_load>: load.yml, database: other, table: db.t": "/v3/job/issue/bulkload/db",
        "td_load>: , database: db, table: t, config: {in: {type: s3}}": "/v3/job/issue/bulkload/db",
        "td_load>: my_session": "/v3/bulk_loads/my_session/jobs",
        "td_load>: , name: my_session": "/v3/bulk_loads/my_session/jobs",
        "td_table_export>: t, database: db, from: 0, to: '2026-01-01T00:00:00Z', s3_bucket: b, s3_path_prefix: p":
            "/v3/export/run/db/t",
        "td_result_export>: , job_id: 5, result_connection: c, result_settings: {bucket: b}": "/v3/job/result_export/5",
    }  # fmt: skip
    for task, path in jobs.items():
        td.server.asked.clear()
        result = finish(project, task)
        assert (result.outcome, result.store["td"]["last_job_id"]) == ("success", "77"), result.error
        assert started(td).path == path
        if "585808" in task:
            assert started(td).json["scheduled_time"] == "2026-02-03T15:05:06Z"
        if "my_session" in task:
            assert started(td).json["scheduled_time"] == "1770131106"
        if "load.yml" in task:
            assert started(td).json["config"] == {"in": {"type": "s3", "key": "AK"}}
            assert (started(td).json["database"], started(td).json["table"]) == ("db", "t")
        if "result_settings" in task:
            assert started(td).form["result_connection_id"] == "9"
            assert started(td).form["result_connection_settings"] == '{"bucket": "b"}'
        if "s3_bucket" in task:
            assert (started(td).form["from"], started(td).form["to"]) == ("0", "1767225600")
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR], "no option is unused"


def test_td_ddl(project, td):
    lists = "create_databases: [d1], drop_databases: [d2], empty_tables: [t1], create_tables: [x.t2]"
    assert (
        finish(project, f"td_ddl>: , database: db, {lists}, rename_tables: [{{from: a, to: b}}]").outcome == "success"
    )
    assert [asked.path.removeprefix("/v3/") for asked in td.server.asked] == [
        *("database/delete/d2", "database/create/d1", "table/delete/db/t1", "table/create/db/t1/log"),
        *("table/create/x/t2/log", "table/rename/db/a/b"),
    ]


# ---- Google ----------------------------------------------------------------------------------------------------------


class BigQuery:
    def __init__(self) -> None:
        self.looks = 0
        self.error = None

    def __call__(self, asked):
        assert asked.headers["Authorization"] == "Bearer token"
        if asked.path.startswith("/storage"):
            self.looks += 1
            return (200, {"name": "a/b", "size": "5"}) if self.looks > 1 else 404
        if asked.method != "GET":
            return 200, {}
        self.looks += 1
        failure = {"errorResult": self.error, "errors": [self.error]} if self.error else {}
        return 200, {"status": {"state": "DONE" if self.looks > 1 else "RUNNING", **failure}}


@pytest.fixture
def google(project, web):
    service = BigQuery()
    service.server = web(service)
    credential = json.dumps({"project_id": "proj", "access_token": "token"})
    endpoints = {"gcp.bq.endpoint": service.server.url, "gcp.gcs.endpoint": service.server.url}
    project.answers.secrets = {"gcp.credential": credential, **endpoints}
    return service


@pytest.mark.parametrize(
    ("task", "configuration"),
    [
        (
            "bq>: {data: SELECT 1}, dataset: d, destination_table: t, write_disposition: WRITE_TRUNCATE",
            {
                "query": {
                    "query": "SELECT 1",
                    "useLegacySql": False,
                    "writeDisposition": "WRITE_TRUNCATE",
                    "defaultDataset": {"projectId": "proj", "datasetId": "d"},
                    "destinationTable": {"projectId": "proj", "datasetId": "d", "tableId": "t"},
                }
            },
        ),
        (
            "bq_load>: gs://b/f.csv, destination_table: 'other:d.t', source_format: CSV, skip_leading_rows: 1",
            {
                "load": {
                    "sourceUris": ["gs://b/f.csv"],
                    "destinationTable": {"projectId": "other", "datasetId": "d", "tableId": "t"},
                    "sourceFormat": "CSV",
                    "skipLeadingRows": 1,
                }
            },
        ),
        (
            "bq_extract>: d.t, destination: [gs://b/1, gs://b/2], compression: GZIP",
            {
                "extract": {
                    "sourceTable": {"projectId": "proj", "datasetId": "d", "tableId": "t"},
                    "destinationUris": ["gs://b/1", "gs://b/2"],
                    "compression": "GZIP",
                }
            },
        ),
    ],
)
def test_bigquery_jobs(project, google, task, configuration):
    result = finish(project, task)
    begun = google.server.asked[0]
    assert (begun.path, begun.json["configuration"]) == ("/bigquery/v2/projects/proj/jobs", configuration)
    assert result.store["bq"]["last_job_id"] == begun.json["jobReference"]["jobId"]
    assert len(google.server.asked) == 3


def test_a_bigquery_job_that_fails(project, google):
    google.error = {"message": "no such table", "reason": "notFound"}
    failed = finish(project, "bq>: {data: SELECT 1}")
    assert failed.error.type == "BigQueryJobFailed"
    assert failed.error.message.endswith("failed: no such table")


def test_bigquery_datasets_and_tables(project, google):
    lists = "create_datasets: [{id: d1, location: EU}], empty_tables: [t1], delete_datasets: ['p:d2']"
    assert finish(project, f"bq_ddl>: , dataset: d, {lists}").outcome == "success"
    front = "/bigquery/v2/projects"
    assert [(asked.method, asked.path) for asked in google.server.asked] == [
        ("DELETE", f"{front}/p/datasets/d2"),
        ("POST", f"{front}/proj/datasets"),
        ("DELETE", f"{front}/proj/datasets/d/tables/t1"),
        ("POST", f"{front}/proj/datasets/d/tables"),
    ]
    assert google.server.asked[1].json["location"] == "EU"


def test_a_service_account_gets_a_token_for_its_key(project, web):
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    tokens = web(lambda asked: (200, {"access_token": "token", "expires_in": 3600}))
    service = BigQuery()
    service.looks = 1
    storage = web(service)
    account = {"client_email": "a@b.c", "token_uri": tokens.url, "private_key": pem, "project_id": "proj"}
    project.answers.secrets = {"gcp.credential": json.dumps(account), "gcp.gcs.endpoint": storage.url}
    assert finish(project, "gcs_wait>: b/a/b").outcome == "success"
    assert "token" in project.answers.masked
    tokens.answer = lambda asked: (400, {"error": "invalid_grant"})
    assert "Google gave no token for `gcp.credential`" in finish(project, "gcs_wait>: b/a/b").error.message


def test_gcs_wait(project, google):
    result = finish(project, "gcs_wait>: b/a/b")
    assert result.store == {"gcs_wait": {"last_object": {"metadata": {"name": "a/b", "size": "5"}}}}
    assert google.server.asked[0].path == "/storage/v1/b/b/o/a%2Fb"


# ---- Amazon ----------------------------------------------------------------------------------------------------------


def test_signatures_are_those_of_amazons_example():
    """The request and its signature are from Amazon's documentation of S3."""
    keys = AwsKeys("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
    request = WebRequest("https://examplebucket.s3.amazonaws.com/test.txt", headers={"Range": "bytes=0-9"})
    headers = signed(request, keys, "us-east-1", "s3", datetime(2013, 5, 24, tzinfo=UTC)).headers
    expected = "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
    assert headers["Authorization"].endswith(
        f"SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, Signature={expected}"
    )


@pytest.fixture
def s3(project, web) -> WebServer:
    keys = {"aws.s3.access_key_id": "AK", "aws.s3.secret_access_key": "SK"}
    server = web(lambda asked: 404)
    project.answers.secrets = {**keys, "aws.s3.endpoint": server.url}
    return server


def test_s3_wait(project, s3):
    text = "+t: {s3_wait>: bucket/a b/c.csv, path_style_access: true, version_id: v1}"
    assert project.run(text).again_after_seconds == 5
    s3.answer = lambda asked: (200, b"xyz", {"ETag": '"e"', "x-amz-meta-owner": "ann"})
    found = project.run(text).store["s3"]["last_object"]
    assert (found["metadata"]["ETag"], found["metadata"]["Content-Length"]) == ('"e"', 3)
    assert found["user_metadata"] == {"owner": "ann"}
    asked = s3.asked[0]
    assert (asked.method, asked.path, asked.query) == ("HEAD", "/bucket/a%20b/c.csv", {"versionId": "v1"})
    assert asked.headers["Authorization"].startswith("AWS4-HMAC-SHA256 Credential=AK/")
    s3.answer = lambda asked: 403
    assert "access to `bucket/a b/c.csv` was denied" in project.run(text).error.message


@pytest.mark.parametrize(("options", "outcome"), [("", "failed"), ("continue_on_timeout: true", "success")])
def test_s3_wait_gives_up(project, s3, options, outcome):
    text = f"+t: {{s3_wait>: , bucket: b, key: k, path_style_access: true, timeout: 1m, {options}}}"
    first = project.run(text, waited_seconds=100.0)
    assert project.run(text, waited_seconds=159.0, poll_state=first.poll_state).outcome == "again"
    last = project.run(text, waited_seconds=160.0, poll_state=first.poll_state)
    assert last.outcome == outcome
    assert last.store == {"s3": {"last_object": {}}} if outcome == "success" else "`b/k`" in last.error.message


def test_objects_need_a_bucket_and_a_key(project, s3):
    assert "expected `BUCKET/KEY`" in project.run("+t: {s3_wait>: bucket}").error.message
    assert "got both" in project.run("+t: {s3_wait>: b/k, bucket: c}").error.message


@pytest.fixture
def redshift(project, postgres_url):
    """Redshift as far as PostgreSQL can play it."""
    parts = urlsplit(postgres_url)
    url = postgres_url.replace("postgresql+psycopg://", "postgresql://")
    secrets = {"password": unquote(parts.password or "x"), "host": parts.hostname, "port": str(parts.port)}
    secrets |= {"user": parts.username, "database": parts.path.lstrip("/")}
    project.answers.secrets = {f"aws.redshift.{key}": str(value) for key, value in secrets.items() if value}
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE FUNCTION getdate() RETURNS timestamp LANGUAGE sql AS 'SELECT now()::timestamp'")
        yield connection


def test_redshift_runs_statements_once(project, redshift):
    redshift.execute("CREATE TABLE t (n int)")
    for _ in range(2):
        assert project.run("+t: {redshift>: {data: INSERT INTO t VALUES (1)}}").outcome == "success"
    assert redshift.execute("SELECT * FROM t").fetchall() == [(1,)]
    stored = project.run("+t: {redshift>: {data: SELECT n FROM t}, store_last_results: first}")
    assert stored.store == {"redshift": {"last_results": {"n": 1}}}
    name = redshift.execute("SELECT tablename FROM pg_tables WHERE tablename LIKE '\\_\\_digdag%'").fetchone()[0]
    redshift.execute(f"UPDATE \"{name}\" SET completed_at = completed_at - interval '2 days'")
    project.run("+t: {redshift>: {data: INSERT INTO t VALUES (2)}}", first_started_at=datetime(2026, 1, 1, tzinfo=UTC))
    names = redshift.execute("SELECT tablename FROM pg_tables WHERE tablename LIKE '\\_\\_digdag%'").fetchall()
    assert len(names) == 1 and names[0][0] != name


TOKEN = """<Credentials><SessionToken>TOK</SessionToken><SecretAccessKey>TSK</SecretAccessKey>
<AccessKeyId>TAK</AccessKeyId></Credentials>"""


def test_redshift_load_asks_for_temporary_keys_and_tells_nobody(project, redshift, web):
    sts = web(lambda asked: (200, TOKEN))
    project.answers.secrets |= {"aws.access_key_id": "AK", "aws.secret_access_key": "SK", "aws.sts.endpoint": sts.url}
    failed = project.run("+t: {redshift_load>: , table: t, from: s3://b/p, csv: true, gzip: true, maxerror: 5}")
    # PostgreSQL does not know COPY from S3; what it says must not quote the statement.
    assert failed.error.message.startswith("the database said no: syntax error")
    assert "TSK" not in failed.error.message and "TSK" in project.answers.masked
    form = sts.asked[0].form
    assert (form["Action"], form["DurationSeconds"]) == ("GetFederationToken", "10800")
    assert json.loads(form["Policy"])["Statement"][0]["Resource"] == "arn:aws:s3:::b/p*"
    sts.answer = lambda asked: (403, "<Message>not allowed</Message>")
    refused = project.run("+t: {redshift_unload>: , query: SELECT 1, to: s3://b/p}")
    assert "AWS gave no temporary credentials: not allowed" in refused.error.message
