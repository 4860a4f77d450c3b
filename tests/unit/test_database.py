from __future__ import annotations

import socket

import pytest

from pipeline.database import connect, upgrade
from pipeline.errors import RetriableError, UsageError
from pipeline.store import Store


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.mark.parametrize("action", [upgrade, Store.open])
def test_an_unreachable_database_is_retriable_and_said_in_one_line_without_the_password(
    action: object, closed_port: int
) -> None:
    url = f"postgresql://teacher:s3cret@127.0.0.1:{closed_port}/lectures"
    with pytest.raises(RetriableError) as caught:
        action(url)  # type: ignore[operator]
    assert f"127.0.0.1:{closed_port}/lectures" in caught.value.reason
    assert "check that it runs" in caught.value.reason
    assert "\n" not in caught.value.reason
    assert "s3cret" not in caught.value.reason


@pytest.mark.parametrize("url", ["mysql://u:s3cret@h/d", "sqlite://", "no url", "", "postgresql://u:s3cret@h:port/d"])
def test_a_url_that_is_not_postgresql_is_refused_without_showing_the_password(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        connect(url)
    assert "postgresql://" in caught.value.reason
    assert "s3cret" not in caught.value.reason


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_every_spelling_of_a_postgresql_url_is_taken(scheme: str) -> None:
    assert connect(f"{scheme}://teacher@host/lectures").driver == "psycopg"
