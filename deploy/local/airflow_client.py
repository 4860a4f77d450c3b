"""The little of Airflow's REST API that bringing it up needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx

from pipeline.errors import RetriableError

TIMEOUT_S = 10.0
MAX_PAGE = 100
CONFLICT = 409


class AirflowClient:
    """For an Airflow that takes everybody for an administrator."""

    def __init__(self, url: str) -> None:
        self._url = url

    def is_healthy(self) -> bool:
        """Whether its database answers and all its programs gave a sign of life lately."""
        try:
            parts = self._get("/api/v2/monitor/health")
        except RetriableError:
            return False
        return all(part["status"] == "healthy" for part in parts.values())

    def create_pool(self, name: str, slots: int) -> None:
        """Harmless where it is: a pool that somebody resized stays as it is."""
        answer = self._request("POST", "/api/v2/pools", {"name": name, "slots": slots})
        if answer.status_code != CONFLICT:
            self._checked(answer)

    def read_files(self) -> set[str]:
        """The names of the DAG files that it has read, those that it cannot import among them."""
        dags = self._get("/api/v2/dags", limit=MAX_PAGE)["dags"]
        return {Path(dag["fileloc"]).name for dag in dags} | {Path(name).name for name in self.import_errors()}

    def import_errors(self) -> dict[str, str]:
        """By file: why it cannot be imported."""
        errors = self._get("/api/v2/importErrors", limit=MAX_PAGE)["import_errors"]
        return {error["filename"]: error["stack_trace"] for error in errors}

    def _get(self, path: str, **query: int) -> dict[str, Any]:
        answer: dict[str, Any] = self._checked(self._request("GET", path, query=query)).json()
        return answer

    def _request(
        self, method: str, path: str, body: dict[str, Any] | None = None, query: dict[str, int] | None = None
    ) -> httpx.Response:
        try:
            with httpx.Client(base_url=self._url, timeout=TIMEOUT_S, trust_env=False) as client:
                token = client.get("/auth/token").json()["access_token"]
                headers = {"Authorization": f"Bearer {token}"}
                return client.request(method, path, json=body, params=query, headers=headers)
        except (httpx.HTTPError, ValueError, KeyError) as error:
            raise RetriableError(f"Airflow at {self._url} does not answer: {error!r}") from error

    def _checked(self, answer: httpx.Response) -> httpx.Response:
        if not answer.is_success:
            raise RetriableError(f"Airflow at {self._url} answers {answer.status_code}: {answer.text[:200]}")
        return answer
