"""A user and a password before the host of a JDBC URL: refused as the URL is read, and not shown."""

from __future__ import annotations

import pytest

from tidemill.connectors.jdbc.urls import Database
from tidemill.errors import ValidationError


@pytest.mark.parametrize("who", ["me:secret", "me:1234", "me"])
def test_credentials_before_the_host(who: str) -> None:
    with pytest.raises(ValidationError, match="is not a JDBC URL") as raised:
        _ = Database(f"jdbc:postgresql://{who}@host/db").dialect
    assert "secret" not in str(raised.value)
    assert "1234" not in str(raised.value)
    assert "'username' and 'password'" in raised.value.hint


def test_a_plain_url() -> None:
    assert Database("jdbc:postgresql://host:54/db?user=a").place == ("postgresql", "a", "host", 54, "db")
