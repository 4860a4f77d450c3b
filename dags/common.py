"""What the DAGs share: how tasks are tried again, how errors end them, and the opened store."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import get_current_context
from airflow.sdk.exceptions import AirflowFailException

if TYPE_CHECKING:
    from consumers.airflow_api import AirflowApi
    from pipeline.settings import Settings
    from pipeline.store_line import LineStore

INGEST = "ingest_media"
SLICING_TASK = "slice_and_publish"
"""Its task that sends the slices."""
SLICING_POOL = "slicing"
"""Its slots are how many media may be decoded at once; a pool of Airflow's, made by who sets it up."""
PRIORITIES = ("urgent", "normal", "bulk")

TASKS: dict[str, Any] = {
    "owner": "lecturemill",
    "retries": 6,
    "retry_delay": timedelta(seconds=30),
    "retry_exponential_backoff": 2.0,
    # With six retries a broker or a database may be away for half an hour before a run fails.
    "max_retry_delay": timedelta(minutes=10),
}


@contextmanager
def failing_at_once() -> Iterator[None]:
    """An input at fault fails its task in one line, without retries; anything else is tried again."""
    from pipeline.errors import InvalidInputError

    try:
        yield
    except InvalidInputError as error:
        raise AirflowFailException(error.reason) from error


def asked_for() -> Mapping[str, Any]:
    """The parameters of the run that this task belongs to."""
    return get_current_context()["params"]


def settings() -> Settings:
    """Resolved once, at the beginning of a task."""
    from pipeline.settings import settings_from

    return settings_from(os.environ)


def opened_airflow(surroundings: Settings) -> AirflowApi:
    """Airflow's own REST API, for tasks that start runs."""
    from consumers.airflow_api import AirflowApi, credentials_from

    return AirflowApi(surroundings.airflow_url, credentials_from(os.environ))


def only_warnings_of(*names: str) -> None:
    """A task's log is for what happens to the media, not for every connection that a library opens."""
    for name in names:
        logging.getLogger(name).setLevel(logging.WARNING)


@contextmanager
def opened_store(surroundings: Settings) -> Iterator[LineStore]:
    """The store, its tables in place."""
    from pipeline.settings import open_database
    from pipeline.store_line import LineStore

    only_warnings_of("alembic")
    with open_database(surroundings) as url, LineStore.open(url) as store:
        yield store
