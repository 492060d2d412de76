"""Processes that run user code do not see what opens the store."""

from __future__ import annotations

import pytest

from headrace.user_environment import environment_of_user_code, without_password


@pytest.mark.parametrize(
    ("url", "seen"),
    [
        ("postgresql://app:hunter22@db:5432/flows", "postgresql://app@db:5432/flows"),
        ("postgresql+psycopg://app:p/a?s@s#@db/flows", "postgresql+psycopg://app@db/flows"),
        ("postgresql://db/flows?user=app&password=hunter22&sslmode=require", "postgresql://db/flows?user=app&sslmode=require"),
        ("postgresql://db/flows?password=hunter22", "postgresql://db/flows"),
        ("postgresql://app@db/flows", "postgresql://app@db/flows"),
        ("sqlite:////var/lib/headrace/headrace.db", "sqlite:////var/lib/headrace/headrace.db"),
    ],
)  # fmt: skip
def test_a_url_keeps_everything_but_its_password(url, seen):
    assert without_password(url) == seen


def test_keys_are_gone_and_the_store_keeps_its_password_only_if_that_is_asked_for():
    url = "postgresql://app:hunter22@db/flows"
    given = {
        "HEADRACE_STORE": url,
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": url,
        "HEADRACE_SECRETS__KEYS": "k",
        "PATH": "/",
    }
    bare = "postgresql://app@db/flows"
    expected = {"HEADRACE_STORE": bare, "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": bare, "PATH": "/"}
    assert environment_of_user_code(given) == expected
    asked_for = environment_of_user_code(given, with_store_password=True)
    assert asked_for == {**expected, "HEADRACE_STORE": url, "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": url}
