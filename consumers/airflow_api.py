"""Airflow's REST API, as far as the line needs it: start a run once, count those that are not finished.

Foreign errors are mapped here. What is wrong with Airflow or with our access to it is a RetriableError; only a run
that Airflow refuses for what it says is an InvalidInputError.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx

from pipeline.errors import InvalidInputError, RetriableError, UsageError
from pipeline.store_line import Asked
from pipeline.values import Media

TIMEOUTS = httpx.Timeout(30.0, connect=5.0, pool=5.0)
"""Seconds. A busy Airflow answers within one or two; a start that is repeated after a time-out is answered 409."""
USER = "LECTUREMILL_AIRFLOW_USER"
PASSWORD_FILE = "LECTUREMILL_AIRFLOW_PASSWORD_FILE"

# Airflow's own pattern, and no more than its column of 250 characters takes with a version behind it.
_RUN_ID = re.compile(r"[A-Za-z0-9_.~:+-]{1,200}")
# Airflow takes a run that is so called for one of its own kinds.
_RESERVED = re.compile(r"(scheduled|manual|backfill|asset_triggered|asset_materialization|operator_triggered)__")
_REFUSED = (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY)


@dataclass(frozen=True, slots=True)
class Credentials:
    """Who logs in; the password is read at each login, so that it can be changed."""

    user: str
    password_file: Path

    def body(self) -> dict[str, str]:
        """Raises RetriableError where the file cannot be read."""
        try:
            return {"username": self.user, "password": self.password_file.read_text("utf-8").strip()}
        except (OSError, UnicodeDecodeError) as error:
            raise RetriableError(f"{PASSWORD_FILE} {self.password_file}: cannot be read ({error})") from error


def credentials_from(environment: Mapping[str, str]) -> Credentials | None:
    """None where none are given: then Airflow must take everybody for an administrator, as the local stack does."""
    user, file = environment.get(USER, ""), environment.get(PASSWORD_FILE, "")
    if bool(user) != bool(file):
        raise UsageError(f"set both {USER} and {PASSWORD_FILE}, or neither")
    return Credentials(user, Path(file)) if user else None


def run_id_of(media_id: str, version: str = "") -> str:
    """The id of a media's run; a second start under it is answered 409.

    It is the media id, or a digest of it where Airflow would not take that. ``version`` tells later runs apart.

    >>> run_id_of("f4d66f68024b7387a971"), run_id_of("algebra-1", "4c1f")
    ('f4d66f68024b7387a971', 'algebra-1+4c1f')
    >>> run_id_of("第一讲")
    'media-3d56bc637bc0933cf87c'
    """
    plain = _RUN_ID.fullmatch(media_id) and not _RESERVED.match(media_id)
    name = media_id if plain else f"media-{hashlib.sha256(media_id.encode()).hexdigest()[:20]}"
    return f"{name}+{version}" if version else name


def run_conf(media: Media, asked: Asked, traceparent: str = "") -> dict[str, object]:
    """What ``ingest_media`` is told of a media; the parameters of its form."""
    return {
        "media_id": media.media_id,
        "course_id": media.course_id,
        "uri": media.uri,
        "title": media.title,
        "language": media.language,
        "priority": str(asked.priority),
        "audio_track": asked.audio_track,
        "traceparent": traceparent,
    }


@dataclass(slots=True)
class AirflowApi:
    """One Airflow. Threads may not share it."""

    url: str
    credentials: Credentials | None
    transport: httpx.BaseTransport | None = None
    """None is the network."""
    _client: httpx.Client = field(init=False, repr=False)
    _token: str = field(init=False, repr=False, default="")

    def __post_init__(self) -> None:
        # Airflow stands on the line's own network: a proxy for the world outside is not asked.
        self._client = httpx.Client(base_url=self.url, timeout=TIMEOUTS, transport=self.transport, trust_env=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    def start_run(self, dag_id: str, run_id: str, conf: Mapping[str, object]) -> bool:
        """Whether it was started now; False where a run of that id is there already, which is as good.

        Raises InvalidInputError where Airflow refuses ``conf`` or ``run_id``, and RetriableError where it cannot be
        reached, is unwell, does not let us in or does not know the DAG (yet).
        """
        body = {"dag_run_id": run_id, "logical_date": None, "conf": dict(conf)}
        answer = self._call("POST", f"/api/v2/dags/{dag_id}/dagRuns", json=body)
        if answer.status_code == HTTPStatus.CONFLICT:
            return False
        if answer.status_code in _REFUSED and "import errors" not in answer.text:
            raise InvalidInputError(f"Airflow refuses the run: {_said(answer)}", source=run_id)
        self._expect_success(answer)
        return True

    def run_state(self, dag_id: str, run_id: str) -> str:
        """``queued``, ``running``, ``success`` or ``failed``; empty where there is no such run. Errors likewise."""
        return self._state(f"/api/v2/dags/{dag_id}/dagRuns/{quote(run_id, safe='')}")

    def task_state(self, dag_id: str, run_id: str, task_id: str) -> str:
        """As Airflow calls it, e.g. ``success`` or ``deferred``; empty where it has none yet. Errors likewise."""
        return self._state(f"/api/v2/dags/{dag_id}/dagRuns/{quote(run_id, safe='')}/taskInstances/{task_id}")

    def _state(self, path: str) -> str:
        answer = self._call("GET", path)
        return "" if answer.status_code == HTTPStatus.NOT_FOUND else str(self._told(answer, "state") or "")

    def unfinished_runs(self, dag_id: str) -> int:
        """How many runs of the DAG are queued or running. Raises RetriableError as ``start_run`` does."""
        asked: dict[str, Any] = {"state": ["queued", "running"], "limit": 1}
        answer = self._call("GET", f"/api/v2/dags/{dag_id}/dagRuns", params=asked)
        return int(self._told(answer, "total_entries"))

    def health(self) -> dict[str, str]:
        """The state of each part, ``healthy`` where it gave a sign of life lately; needs no login. Errors likewise."""
        answer = self._request("GET", "/api/v2/monitor/health")
        self._expect_success(answer)
        try:
            return {name: str(part["status"]) for name, part in answer.json().items()}
        except (ValueError, TypeError, KeyError, AttributeError):
            raise RetriableError(f"{self.url} does not answer as Airflow does: {_said(answer)}") from None

    def dag_trouble(self, dag_id: str) -> str:
        """Why no run of the DAG would go on: not there, broken or paused; empty where it would. Errors likewise."""
        answer = self._call("GET", f"/api/v2/dags/{dag_id}")
        if answer.status_code == HTTPStatus.NOT_FOUND or self._told(answer, "is_stale"):
            return "not there"
        if self._told(answer, "has_import_errors"):
            return "cannot be imported"
        return "paused" if self._told(answer, "is_paused") else ""

    def _call(self, method: str, path: str, **content: Any) -> httpx.Response:
        """With a token, and once more with a new one where it is not accepted: it runs out after a day."""
        if not self._token:
            self._log_in()
        answer = self._request(method, path, **content)
        if answer.status_code == HTTPStatus.UNAUTHORIZED:
            self._log_in()
            answer = self._request(method, path, **content)
        return answer

    def _log_in(self) -> None:
        self._token = ""
        if self.credentials is None:
            answer = self._request("GET", "/auth/token")
        else:
            answer = self._request("POST", "/auth/token", json=self.credentials.body())
        self._token = str(self._told(answer, "access_token"))

    def _request(self, method: str, path: str, **content: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        try:
            return self._client.request(method, path, headers=headers, **content)
        except httpx.HTTPError as error:
            said = str(error) or type(error).__name__
            raise RetriableError(f"Airflow at {self.url} cannot be reached: {said}") from error

    def _told(self, answer: httpx.Response, name: str) -> Any:
        self._expect_success(answer)
        try:
            return answer.json()[name]
        except (ValueError, TypeError, KeyError):
            raise RetriableError(f"{self.url} does not answer as Airflow does: {_said(answer)}") from None

    def _expect_success(self, answer: httpx.Response) -> None:
        if not answer.is_success:
            path = answer.request.url.path
            raise RetriableError(f"Airflow at {self.url} answered {answer.status_code} to {path}: {_said(answer)}")


def _said(answer: httpx.Response) -> str:
    return " ".join(answer.text.split())[:300] or "(nothing)"
