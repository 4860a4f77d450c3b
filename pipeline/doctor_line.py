"""``lecturemill doctor --line``: what the line over many machines needs, too: Kafka, Airflow, the media store."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping

from consumers.airflow_api import AirflowApi, credentials_from
from pipeline.broker_state import BrokerState, broker_state
from pipeline.database import server_time_s
from pipeline.doctor import Finding, finding
from pipeline.errors import LecturemillError
from pipeline.media_store import join, write_text
from pipeline.settings import Settings, open_database

DAGS = ("ingest_media", "backfill_course", "audit_media")
MAX_SKEW_S = 5.0
"""Times of several machines stand side by side in the database; more would put effects before their causes."""
TRIED_NAME = ".lecturemill-doctor"


def examine_line(settings: Settings, environment: Mapping[str, str]) -> Iterator[Finding]:
    """All findings about the line; one part that is away does not hide the others."""
    yield from _kafka(settings)
    yield from _airflow(settings, environment)
    yield _media_store(settings)
    yield _skew(settings)


def _kafka(settings: Settings) -> Iterator[Finding]:
    try:
        state = broker_state(settings.brokers)
    except LecturemillError as error:
        yield finding("kafka", False, error.reason, "start it (make stack), or correct LECTUREMILL_BROKERS")
        return
    brokers = _counted(state.broker_count, "broker")
    yield finding("kafka", True, f"{brokers} at {settings.brokers}, protocol {state.version}", "")
    yield _topics(state)
    for group in state.groups:
        detail = f"{_counted(group.members, 'member')}, {_counted(group.lag, 'message')} waiting"
        yield finding(f"group {group.name}", group.members > 0, detail, f"start one: python -m consumers.{group.name}")
    counts = ", ".join(f"{topic}: {count}" for topic, count in state.dead.items())
    remedy = "see why: python -m consumers.redrive TOPIC --dry-run; mend it, and send them back without --dry-run"
    yield finding("dead letters", not state.dead, counts or "none", remedy)


def _counted(count: int, noun: str) -> str:
    """
    >>> _counted(1, "member"), _counted(0, "member")
    ('1 member', '0 members')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _topics(state: BrokerState) -> Finding:
    if state.missing:
        return finding("topics", False, f"missing: {', '.join(state.missing)}", "run: python -m consumers.topics")
    remedy = "set what is named by Kafka's kafka-configs --alter"
    return finding("topics", not state.unfit, "; ".join(state.unfit) or "all there, with their settings", remedy)


def _airflow(settings: Settings, environment: Mapping[str, str]) -> Iterator[Finding]:
    what, remedy = "airflow", "start it (make stack), or correct LECTUREMILL_AIRFLOW_URL"
    try:
        with AirflowApi(settings.airflow_url, credentials_from(environment)) as api:
            yield _health(api.health(), settings.airflow_url)
            what, remedy = "dags", "let doctor in: LECTUREMILL_AIRFLOW_USER and LECTUREMILL_AIRFLOW_PASSWORD_FILE"
            yield from (_dag(name, api.dag_trouble) for name in DAGS)
    except LecturemillError as error:
        yield finding(what, False, error.reason, remedy)


def _health(parts: Mapping[str, str], url: str) -> Finding:
    # A part that was never started says null.
    ill = {name: state for name, state in parts.items() if state not in ("healthy", "None")}
    detail = ", ".join(f"{name} {state}" for name, state in ill.items()) or f"healthy at {url}"
    return finding("airflow", not ill, detail, "start the parts that are named")


def _dag(name: str, trouble_of: Callable[[str], str]) -> Finding:
    trouble = trouble_of(name)
    remedy = f"run: airflow dags unpause {name}" if trouble == "paused" else "look at: airflow dags list-import-errors"
    return finding(f"dag {name}", not trouble, trouble or "ready", remedy)


def _media_store(settings: Settings) -> Finding:
    uri = settings.media_store
    try:
        write_text(join(uri, TRIED_NAME), "written by lecturemill doctor\n")
    except LecturemillError as error:
        return finding("media store", False, error.reason, "make it writable, or correct LECTUREMILL_MEDIA_STORE")
    return finding("media store", True, f"{uri} can be written", "")


def _skew(settings: Settings) -> Finding:
    try:
        with open_database(settings) as url:
            before_s = time.time()
            there_s = server_time_s(url)
            skew_s = there_s - (before_s + time.time()) / 2
    except LecturemillError as error:
        return finding("clocks", False, error.reason, "mend the database first")
    detail = f"the database's is {abs(skew_s):.1f} s {'ahead' if skew_s > 0 else 'behind'}"
    return finding("clocks", abs(skew_s) <= MAX_SKEW_S, detail, "have both clocks kept by NTP")
