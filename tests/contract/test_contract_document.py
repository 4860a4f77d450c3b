"""docs/contracts.md says what the code does: its examples run, and it names every field, topic and header."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import kafka
import msgspec
import pytest

from consumers.dead_letters import HEADERS
from pipeline.broker import TOPICS
from pipeline.errors import InvalidInputError
from pipeline.message_segments import SegmentSpoken, WordSpoken
from pipeline.messages import (
    MediaSliced,
    MediaUploaded,
    SliceReady,
    SliceTranscribed,
    TranscriptsCompleted,
    decode_uploaded,
)

ROOT = Path(__file__).resolve().parents[2]
SECTIONS: dict[type[msgspec.Struct], str] = {
    MediaUploaded: "## media.uploaded",
    TranscriptsCompleted: "## transcripts.completed",
    SliceReady: '**`kind` "slice"**',
    MediaSliced: '**`kind` "sliced"**',
    SliceTranscribed: '**`kind` "transcript"**',
}


@pytest.fixture(scope="module")
def document() -> str:
    return (ROOT / "docs" / "contracts.md").read_text(encoding="utf-8")


def code(document: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", document, re.MULTILINE | re.DOTALL)


class Delivery:
    """What ``send`` of the fake producer returns; it counts how often it was waited for."""

    waited = 0

    def get(self, timeout: float) -> None:
        assert timeout > 0
        self.waited += 1


class FakeProducer:
    def __init__(self, **settings: Any) -> None:
        self.settings = settings
        self.sent: list[tuple[str, bytes, bytes]] = []
        self.delivery = Delivery()

    def send(self, topic: str, *, key: bytes, value: bytes) -> Delivery:
        self.sent.append((topic, key, value))
        return self.delivery

    def close(self) -> None:
        assert self.delivery.waited, "closed before the delivery was confirmed"


class FakeMessage:
    def __init__(self, value: bytes) -> None:
        self.value = value


class FakeConsumer:
    """Has one completion to read."""

    def __init__(self, topic: str, **settings: Any) -> None:
        self.topic, self.settings, self.committed = topic, settings, 0

    def __iter__(self) -> Any:
        yield FakeMessage((ROOT / "tests/contract/golden/transcripts_completed.v1.json").read_bytes())

    def commit(self) -> None:
        self.committed += 1


def test_the_python_example_of_an_upload_sends_a_valid_message_and_waits_for_it(
    document: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka, "KafkaProducer", FakeProducer)
    names: dict[str, Any] = {}
    exec(code(document, "python")[0], names)
    [(topic, key, value)] = names["producer"].sent
    assert topic == "media.uploaded"
    assert decode_uploaded(value).course_id.encode() == key
    assert names["producer"].settings["acks"] == "all"
    assert names["producer"].delivery.waited == 1


def test_the_python_example_of_a_completion_reads_what_is_sent_and_commits_afterwards(
    document: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(kafka, "KafkaConsumer", FakeConsumer)
    names: dict[str, Any] = {}
    exec(code(document, "python")[1], names)
    assert names["consumer"].topic == "transcripts.completed"
    assert names["consumer"].settings["enable_auto_commit"] is False
    assert names["consumer"].committed == 1
    assert capsys.readouterr().out.startswith("f4d66f68024b7387a971 811 cues: s3://lectures/subtitles/")


def test_the_java_and_shell_examples_send_valid_messages_under_their_course_s_key(document: str) -> None:
    java = re.search(r'"(\S+)", upload.*', code(document, "java")[0])
    shell = re.search(r"echo '(.*?)\|(\{.*\})'", code(document, "sh")[0])
    in_java = re.search(r'"""(.*?)"""', code(document, "java")[0], re.DOTALL)
    assert java
    assert shell
    assert in_java
    assert decode_uploaded(in_java[1].encode()).course_id == java[1]
    assert decode_uploaded(shell[2].encode()).course_id == shell[1]


@pytest.mark.parametrize("kind", SECTIONS, ids=lambda kind: kind.__name__)
def test_every_field_of_a_message_is_described_in_its_section(document: str, kind: type[msgspec.Struct]) -> None:
    section = document.split(SECTIONS[kind], 1)[1]
    table = re.split(r"^(?:##|\*\*)", section, maxsplit=1, flags=re.MULTILINE)[0]
    described = {name for row in re.findall(r"^\|(.*?)\|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}
    assert described == {field.encode_name for field in msgspec.structs.fields(kind)}


@pytest.mark.parametrize("kind", [SegmentSpoken, WordSpoken])
def test_the_parts_of_segments_and_words_are_described_in_their_order(
    document: str, kind: type[msgspec.Struct]
) -> None:
    parts = [rf"`{field.encode_name}`" for field in msgspec.structs.fields(kind)]
    assert re.search(r",\s+".join(parts) + r"\.", document)


def test_an_optional_field_of_an_upload_is_marked_so(document: str) -> None:
    rows = re.findall(r"^\| `(\w+)` \| .*? \| (yes|no)", document, re.MULTILINE)
    required = {field.encode_name for field in msgspec.structs.fields(MediaUploaded) if field.required}
    assert {name for name, optional in rows if optional == "no"} == required


@pytest.mark.parametrize("topic", [topic.name for topic in TOPICS if not topic.name.endswith(".dead")])
def test_every_topic_is_named(document: str, topic: str) -> None:
    assert f"`{topic}`" in document


@pytest.mark.parametrize("header", HEADERS)
def test_every_header_of_a_dead_letter_is_described(document: str, header: str) -> None:
    assert f"`{header}`" in document


def test_the_reason_that_the_document_shows_is_the_one_that_is_given(document: str) -> None:
    shown = re.search(r"`(media\.uploaded: language: .*?)`", document)
    assert shown
    with pytest.raises(InvalidInputError) as caught:
        decode_uploaded(json.dumps({"course_id": "c", "uri": "u", "language": "zh-CN"}).encode())
    assert str(caught.value) == shown[1]
