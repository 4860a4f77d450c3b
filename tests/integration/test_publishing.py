"""What the slicing task sends, with a real PostgreSQL and a sender that remembers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from pipeline.admission import admit, opened
from pipeline.announcements import MediaUploaded
from pipeline.broker import AUDIO_SLICES, Outgoing
from pipeline.decoding import find_ffmpeg
from pipeline.errors import InvalidInputError, RetriableError
from pipeline.messages import MediaSliced, SliceReady, decode_audio_topic
from pipeline.postprocess import Glossary, Term
from pipeline.publisher import Present, Publisher, Sent
from pipeline.publishing import IN_FLIGHT_SLICES, PublishingTools
from pipeline.store_line import LineStore
from pipeline.values import Media, Outcome, Priority, SliceTranscript, TranscribedSlice
from tests.integration.speaking import LoudnessDetector, write_sound

MINUTE = [(25.0, 5.0)] * 2


@dataclass
class Broker:
    """Takes messages, or fails at the call ``fails_at``, counted from 1."""

    fails_at: int = 0
    calls: list[Sequence[Outgoing]] = field(default_factory=list)

    def send(self, outgoings: Sequence[Outgoing]) -> None:
        self.calls.append(outgoings)
        if len(self.calls) == self.fails_at:
            raise RetriableError("the broker is away")

    @property
    def messages(self) -> list[SliceReady | MediaSliced]:
        return [decode_audio_topic(one.value) for call in self.calls for one in call]

    @property
    def slices(self) -> list[SliceReady]:
        return [one for one in self.messages if isinstance(one, SliceReady)]


@pytest.fixture
def line_store(database_url: str) -> Iterator[LineStore]:
    with LineStore.open(database_url) as store:
        yield store


@pytest.fixture
def record(line_store: LineStore, tmp_path: Path) -> Callable[..., Media]:
    """Writes a sound, records it as a media and returns that."""

    def recorded(*runs: tuple[float, float], **asked: object) -> Media:
        uri = write_sound(tmp_path / "lecture.wav", *runs).as_uri()
        return admit(MediaUploaded("geometry", uri, **asked), line_store)  # type: ignore[arg-type]

    return recorded


def publish(store: LineStore, media: Media, broker: Broker, *, model: str = "base", force: bool = False) -> Sent | None:
    tools = PublishingTools(store, broker.send, LoudnessDetector, find_ffmpeg())
    present = Present(store, LoudnessDetector.fingerprint, model)
    return Publisher(tools, present, print).publish(media.media_id, force=force)


def transcribed(ready: SliceReady, outcome: Outcome = Outcome.TRANSCRIBED) -> TranscribedSlice:
    transcript = SliceTranscript(ready.media_id, ready.slice_index, "zh", 1.0, (), outcome, "", 1, 5)
    return TranscribedSlice(ready.slicing, ready.asr, "engine", ready.to_request().audio.slice, transcript)


def test_every_slice_is_sent_with_its_audio_and_then_how_many_there_are(
    line_store: LineStore, record: Callable[..., Media]
) -> None:
    media = record(*MINUTE, language="zh", priority=Priority.URGENT)
    broker = Broker()
    sent = publish(line_store, media, broker)
    *slices, mark = broker.messages
    assert isinstance(mark, MediaSliced)
    assert sent is not None
    assert [one.slice_index for one in broker.slices] == list(range(len(slices))) == list(range(mark.slice_count))
    assert mark.to_plan() == sent.plan
    assert (mark.duration_ms, sent.slices) == (60_000, len(slices))
    for ready in broker.slices:
        assert len(ready.to_request().audio.samples) == (ready.end_ms - ready.start_ms) * 16
        assert (ready.language, ready.model, ready.codec) == ("zh", "base", "flac")
    outgoings = [one for call in broker.calls for one in call]
    assert {(one.topic, one.key) for one in outgoings} == {(AUDIO_SLICES[Priority.URGENT], "geometry")}


def test_only_a_few_slices_are_in_flight(line_store: LineStore, record: Callable[..., Media]) -> None:
    broker = Broker()
    publish(line_store, record(*[(25.0, 5.0)] * 20), broker)
    assert len(broker.slices) >= 20
    assert max(len(call) for call in broker.calls) <= IN_FLIGHT_SLICES


def test_a_silent_media_has_an_end_mark_alone(line_store: LineStore, record: Callable[..., Media]) -> None:
    broker = Broker()
    publish(line_store, record((0.0, 30.0)), broker)
    (mark,) = broker.messages
    assert isinstance(mark, MediaSliced)
    assert (mark.slice_count, mark.duration_ms) == (0, 30_000)


def test_a_task_that_died_anywhere_is_simply_run_again(line_store: LineStore, record: Callable[..., Media]) -> None:
    media, whole = record(*MINUTE), Broker()
    publish(line_store, media, whole)
    for fails_at in range(1, len(whole.calls) + 1):
        with pytest.raises(RetriableError):
            publish(line_store, media, Broker(fails_at))
    again = Broker()
    publish(line_store, media, again)
    assert again.slices == whole.slices


def test_what_is_transcribed_is_not_sent_again_but_what_failed_is(
    line_store: LineStore, record: Callable[..., Media]
) -> None:
    media, first = record(*[(25.0, 5.0)] * 4), Broker()
    publish(line_store, media, first)
    done, failed, *rest = first.slices
    line_store.record_line([transcribed(done), transcribed(failed, Outcome.FAILED)], [])
    second = Broker()
    sent = publish(line_store, media, second)
    assert second.slices == [failed, *rest]
    assert sent is not None
    assert (sent.slices, sent.plan.slice_count) == (len(first.slices) - 1, len(first.slices))


def test_force_sends_everything_again(line_store: LineStore, record: Callable[..., Media]) -> None:
    media, first = record(*MINUTE), Broker()
    publish(line_store, media, first)
    line_store.record_line([transcribed(one) for one in first.slices], [])
    second = Broker()
    publish(line_store, media, second, force=True)
    assert second.slices == first.slices


def test_another_model_or_glossary_makes_other_fingerprints(
    line_store: LineStore, record: Callable[..., Media]
) -> None:
    media, present = record(*MINUTE), Present(line_store, "detector", "base")
    with opened(media, line_store) as found:
        media = found.media
    base = present.options(media)
    assert Present(line_store, "detector", "base").options(media) == base
    small = replace(present, model="small").options(media)
    assert (small.slicing == base.slicing, small.asr == base.asr, small.result == base.result) == (True, False, False)
    line_store.record_glossary("geometry", Glossary((Term("勾股定理", (), "zh", ""),)))
    taught = Present(line_store, "detector", "base").options(media)
    assert (taught.slicing, taught.result == base.result) == (base.slicing, False)
    assert "勾股定理" in taught.prompts["zh"]


def test_a_file_at_fault_is_recorded_as_failed(line_store: LineStore, tmp_path: Path) -> None:
    path = tmp_path / "notes.mp4"
    path.write_text("no lecture " * 100)
    media = admit(MediaUploaded("geometry", path.as_uri()), line_store)
    broker = Broker()
    with pytest.raises(InvalidInputError, match="not a media file"):
        publish(line_store, media, broker)
    (status,) = line_store.status(media.media_id)
    assert (status.state, broker.calls) == ("failed", [])


def test_an_audio_track_that_is_not_there_is_recorded_with_the_length_of_the_media(
    line_store: LineStore, record: Callable[..., Media]
) -> None:
    media = record(*MINUTE, audio_track=3)
    with pytest.raises(InvalidInputError, match="there is no audio track 3"):
        publish(line_store, media, Broker())
    (span,) = line_store.ledger(media.media_id)
    assert (span.end_ms, span.outcome) == (60_000, Outcome.FAILED)
