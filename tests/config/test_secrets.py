"""What is masked, and what is not."""

from __future__ import annotations

import pytest

from tidemill.config.secrets import is_secret, masked, shown_value, without_secrets


@pytest.mark.parametrize(
    "key",
    ["password", "s3.secret-key", "s3.access-key", "sasl.jaas.config", "My.Passwd", "fs.azure.account.key.x"],
)
def test_secret_keys(key: str) -> None:
    assert is_secret(key)
    assert shown_value(key, "hunter2") == "******"


@pytest.mark.parametrize("key", ["username", "path", "csv.null-literal", "table-name", "key.format"])
def test_other_keys(key: str) -> None:
    assert not is_secret(key)
    assert shown_value(key, "x") == "x"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("jdbc:postgresql://h/d?user=u&password=p%40x", "jdbc:postgresql://h/d?user=u&password=******"),
        ("jdbc:postgresql://h/d?password=p&ssl=true", "jdbc:postgresql://h/d?password=******&ssl=true"),
        ("jdbc:postgresql://u:p:q@h:5432/d", "jdbc:postgresql://u:******@h:5432/d"),
        ("cannot reach 's3://k:s@b/x'", "cannot reach 's3://k:******@b/x'"),
        ("jdbc:sqlserver://h;databaseName=d;Password=x", "jdbc:sqlserver://h;databaseName=d;Password=******"),
        ("/data/a@b:c", "/data/a@b:c"),
        ("http://h:80/x?y=a@b:c", "http://h:80/x?y=a@b:c"),
    ],
)
def test_secrets_in_urls(text: str, shown: str) -> None:
    assert masked(text) == shown


def test_a_new_password_is_no_other_table() -> None:
    first = {"url": "jdbc:x://h/d?password=a", "password": "b", "table-name": "t"}
    second = {"url": "jdbc:x://h/d?password=c", "password": "d", "table-name": "t"}
    assert without_secrets(first) == without_secrets(second)
    assert without_secrets(first) != without_secrets({**first, "table-name": "u"})
