"""The whole line on a stack of its own, as other systems use it: announced on Kafka, read on Kafka and in SQL."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from consumers.airflow_api import AirflowApi
from deploy.local.stack import Stack
from pipeline.broker import TRANSCRIPTS_COMPLETED
from pipeline.broker_state import BrokerState, broker_state
from pipeline.identity import media_id_of

DAG = "ingest_media"
TIMEOUT_S = 1200
"""For one thing to happen, on a machine with ten times as much to do as it has cores."""
POLL_S = 1.0
READ_TIMEOUT_S = 60
PROGRAM = str(Path(sys.executable).with_name("lecturemill"))
SHOWN_LINES = 5


@dataclass(frozen=True)
class Lecture:
    """A file as it is announced, and as ``lecturemill run`` is told of it."""

    path: Path
    course_id: str
    language: str
    """``auto`` is told to nobody."""

    @property
    def media_id(self) -> str:
        return media_id_of(self.course_id, self.path.resolve().as_uri())


@dataclass(frozen=True)
class Line:
    """A stack that is up, seen from outside."""

    stack: Stack

    def announce(self, lectures: Sequence[Lecture]) -> None:
        """As docs/contracts.md tells a stranger to."""
        producer = KafkaProducer(bootstrap_servers=self.stack.kafka.address, acks="all")
        for lecture in lectures:
            upload = {"course_id": lecture.course_id, "uri": lecture.path.resolve().as_uri()}
            if lecture.language != "auto":
                upload["language"] = lecture.language
            delivery = producer.send(
                "media.uploaded", key=upload["course_id"].encode(), value=json.dumps(upload).encode()
            )
            delivery.get(timeout=READ_TIMEOUT_S)
        producer.close()

    def completed(self) -> list[dict[str, Any]]:
        """All messages that ``transcripts.completed`` holds now."""
        consumer = KafkaConsumer(
            bootstrap_servers=self.stack.kafka.address,
            enable_auto_commit=False,
            consumer_timeout_ms=READ_TIMEOUT_S * 1000,
        )
        numbers = consumer.partitions_for_topic(TRANSCRIPTS_COMPLETED)
        places = [TopicPartition(TRANSCRIPTS_COMPLETED, number) for number in numbers]
        consumer.assign(places)
        consumer.seek_to_beginning(*places)
        total = sum(consumer.end_offsets(places).values())
        messages = [json.loads(next(consumer).value) for _ in range(total)]
        consumer.close()
        return messages

    def command(self, *words: str) -> str:
        """What ``lecturemill`` answers in a shell that has read ``env``."""
        environment = {**os.environ, **self.stack.environment()}
        done = subprocess.run(
            [PROGRAM, *words], env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def brokers(self) -> BrokerState:
        return broker_state(self.stack.kafka.address)

    def runs(self) -> dict[str, dict[str, Any]]:
        """All runs of ``ingest_media``, by their ids."""
        found = self._asked(f"/api/v2/dags/{DAG}/dagRuns")["dag_runs"]
        return {run["dag_run_id"]: run for run in found}

    def task_state(self, lecture: Lecture, task: str) -> str:
        """Empty where the run, or the task in it, has not begun."""
        with AirflowApi(self.stack.airflow.address, None) as airflow:
            return airflow.task_state(DAG, lecture.media_id, task)

    def await_runs(self, lectures: Sequence[Lecture]) -> None:
        """Return when the run of each has succeeded."""
        self.until(lambda: self._are_ended(lectures), "all runs have ended")
        states = {lecture.path.name: self.runs()[lecture.media_id]["state"] for lecture in lectures}
        assert set(states.values()) == {"success"}, f"{states}\n{self.logs()}"

    def _are_ended(self, lectures: Sequence[Lecture]) -> bool:
        runs = self.runs()
        return all(runs.get(one.media_id, {}).get("state") in ("success", "failed") for one in lectures)

    def until(self, is_so: Callable[[], bool], what: str) -> None:
        deadline_s = time.monotonic() + TIMEOUT_S
        while not is_so():
            if time.monotonic() > deadline_s:
                pytest.fail(f"not within {TIMEOUT_S} s: {what}\n{self.logs()}")
            time.sleep(POLL_S)

    def logs(self) -> str:
        """The last lines of each program."""
        programs = [program for part in self.stack.parts.values() for program in part.programs]
        last = {program.name: program.said().splitlines()[-SHOWN_LINES:] for program in programs}
        return "\n".join(f"{name}: {line}" for name, lines in last.items() for line in lines)

    def family(self) -> list[psutil.Process]:
        """Every process of the stack, children of children too."""
        pids = [pid for row in self.stack.rows() if (pid := row.pid)]
        roots = [psutil.Process(pid) for pid in (*pids, self.stack.postgres.server_pid())]
        return [*roots, *(child for root in roots for child in root.children(recursive=True))]

    def _asked(self, path: str) -> Any:
        with httpx.Client(base_url=self.stack.airflow.address, timeout=READ_TIMEOUT_S, trust_env=False) as client:
            token = client.get("/auth/token").json()["access_token"]
            return client.get(path, headers={"Authorization": f"Bearer {token}"}).raise_for_status().json()
