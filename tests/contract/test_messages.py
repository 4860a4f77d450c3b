"""The contract: the bytes of every message, what a reader accepts, and what it says of anything else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline import messages
from pipeline.audio_codec import Codec, decode
from pipeline.errors import InvalidInputError
from pipeline.glossary_file import LANGUAGES
from pipeline.message_segments import SegmentSpoken, WordSpoken
from pipeline.messages import (
    MediaSliced,
    MediaUploaded,
    Message,
    SliceReady,
    SliceTranscribed,
    TranscriptsCompleted,
    encode,
)
from pipeline.values import (
    SAMPLE_RATE_HZ,
    SAMPLES_PER_MS,
    Boundary,
    Ending,
    MediaPlan,
    Outcome,
    Priority,
    Samples,
    Segment,
    Slice,
    SliceAudio,
    SliceTranscript,
    Span,
    TranscribedSlice,
    Word,
)

GOLDEN = Path(__file__).parent / "golden"
SLICING, ASR = "0123456789abcdef", "fedcba9876543210"
TONE_MS = 250

Reader = Callable[[bytes], Message]
READERS: dict[type[Message], Reader] = {
    MediaUploaded: messages.decode_uploaded,
    SliceReady: messages.decode_audio_topic,
    MediaSliced: messages.decode_audio_topic,
    SliceTranscribed: messages.decode_transcript_topic,
    TranscriptsCompleted: messages.decode_completed,
}


def tone() -> Samples:
    """440 Hz on the grid of 16 bits: the audio of the golden slices."""
    at_s = np.arange(TONE_MS * SAMPLES_PER_MS) / SAMPLE_RATE_HZ
    return np.round(8192 * np.sin(2 * np.pi * 440 * at_s)).astype(np.float32) / np.float32(32768)


def a_slice_ready(codec: Codec = "flac", **changes: Any) -> SliceReady:
    fields: dict[str, Any] = {
        "course_id": "线性代数-1",
        "media_id": "f4d66f68024b7387a971",
        "slice_index": 3,
        "start_ms": 90_050,
        "end_ms": 90_050 + TONE_MS,
        "boundary": Boundary.SILENCE,
        "speech": ((90_050, 90_180), (90_220, 90_300)),
        "language": "zh",
        "prompts": {"zh": "以下是普通话的句子：勾股定理。"},
        "model": "large-v3",
        "slicing": SLICING,
        "asr": ASR,
        "priority": Priority.URGENT,
        "codec": codec,
        "audio": (GOLDEN / f"tone.{codec}").read_bytes(),
    }
    return SliceReady(**fields | changes)


def an_upload(**changes: Any) -> MediaUploaded:
    return MediaUploaded(**{"course_id": "maths-1", "uri": "file:///lectures/1.mp4"} | changes)


def a_full_upload() -> MediaUploaded:
    return MediaUploaded(
        course_id="线性代数-1",
        uri="s3://lectures/2026/第一讲.mp4",
        media_id="linear-algebra-2026-01",
        title="第一讲：勾股定理",
        language="zh",
        priority=Priority.BULK,
        audio_track=2,
    )


def an_end_mark() -> MediaSliced:
    return MediaSliced(
        course_id="线性代数-1",
        media_id="f4d66f68024b7387a971",
        slicing=SLICING,
        asr=ASR,
        slice_count=117,
        duration_ms=3_000_000,
        missing=((1_800_000, 1_801_250),),
        warnings=("no audio from 30:00 to 30:01: damaged or cut off",),
        slicing_ms=41_200,
    )


def a_transcript(*endings: Ending | None) -> SliceTranscribed:
    first, last = endings
    words = (WordSpoken("勾", 90_060, 90_120, 0.875, first), WordSpoken("股。", 90_230, 90_290, 0.5, last))
    return SliceTranscribed(
        course_id="线性代数-1",
        media_id="f4d66f68024b7387a971",
        slice_index=3,
        start_ms=90_050,
        end_ms=90_300,
        boundary=Boundary.SILENCE,
        speech=((90_050, 90_180), (90_220, 90_300)),
        slicing=SLICING,
        asr=ASR,
        engine="faster-whisper large-v3, cuda float16",
        language="zh",
        language_probability=0.9375,
        segments=(SegmentSpoken(90_060, 90_290, "勾股。", words, -0.25, 0.0625, 1.125, 0.0),),
        outcome=Outcome.TRANSCRIBED,
        reason="",
        attempts=1,
        engine_ms=640,
    )


def a_completion() -> TranscriptsCompleted:
    return TranscriptsCompleted(
        course_id="线性代数-1",
        media_id="f4d66f68024b7387a971",
        title="第一讲：勾股定理",
        language="zh",
        duration_ms=3_000_000,
        speech_ms=2_345_678,
        cues=811,
        violations=3,
        filtered_ms=12_000,
        failed_ms=1_250,
        files=("s3://lectures/subtitles/第一讲.zh.srt", "s3://lectures/subtitles/第一讲.zh.vtt"),
    )


EXAMPLES: dict[str, Callable[[], Message]] = {
    "media_uploaded.v1.json": a_full_upload,
    "slice_ready_flac.v1.msgpack": a_slice_ready,
    "slice_ready_opus.v1.msgpack": lambda: a_slice_ready("opus", language=None, prompts={}, priority=Priority.NORMAL),
    "media_sliced.v1.msgpack": an_end_mark,
    "slice_transcribed_ending.v1.msgpack": lambda: a_transcript(Ending(0.125, 0.5, 90), None),
    "transcripts_completed.v1.json": a_completion,
}

OLDER: dict[str, Callable[[], Message]] = {"slice_transcribed.v1.msgpack": lambda: a_transcript(None, None)}
"""Written before an optional field was added: still read, no longer written."""


@pytest.mark.parametrize("name", EXAMPLES | OLDER)
def test_the_golden_bytes_are_read_into_the_values_they_were_written_from(name: str) -> None:
    expected = (EXAMPLES | OLDER)[name]()
    assert READERS[type(expected)]((GOLDEN / name).read_bytes()) == expected


@pytest.mark.parametrize("name", EXAMPLES)
def test_today_s_code_writes_the_golden_bytes(name: str) -> None:
    assert encode(EXAMPLES[name]()) == (GOLDEN / name).read_bytes()


def test_every_golden_message_is_tested() -> None:
    stored = {path.name for path in GOLDEN.iterdir() if ".v" in path.name}
    assert stored == set(EXAMPLES | OLDER)
    assert {type(make()) for make in EXAMPLES.values()} == set(READERS)


def test_the_audio_of_the_golden_flac_slice_is_the_tone_sample_for_sample() -> None:
    np.testing.assert_array_equal(decode((GOLDEN / "tone.flac").read_bytes(), "flac", len(tone())), tone())


def test_the_audio_of_the_golden_opus_slice_is_the_tone() -> None:
    heard = decode((GOLDEN / "tone.opus").read_bytes(), "opus", len(tone()))
    assert np.corrcoef(heard, tone())[0, 1] > 0.95


# The fields

KEYS = st.text(st.characters(exclude_categories=["C", "Z"], include_characters=" "), min_size=1, max_size=200)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
WHOLES = st.integers(0, 2**53 - 1)
NUMBERS = st.floats(allow_nan=False)
LANGUAGE = st.none() | st.sampled_from(sorted(LANGUAGES))


@st.composite
def slices(draw: st.DrawFn, longest_ms: int = 30_000) -> Slice:
    start_ms = draw(st.integers(0, 2**45))
    end_ms = start_ms + draw(st.integers(0, longest_ms))
    cuts = sorted(draw(st.lists(st.integers(start_ms, end_ms), max_size=6)))
    speech = tuple(Span(a, b) for a, b in zip(cuts[::2], cuts[1::2], strict=False))
    boundary = draw(st.sampled_from(Boundary))
    return Slice(draw(KEYS), draw(WHOLES), Span(start_ms, end_ms), boundary, speech)


ENDINGS = st.none() | st.builds(Ending, st.floats(0, 1), st.floats(0, 1), WHOLES)
WORDS = st.builds(Word, TEXTS, WHOLES, WHOLES, NUMBERS, ending=ENDINGS)
SEGMENTS = st.builds(
    Segment, WHOLES, WHOLES, TEXTS, st.lists(WORDS, max_size=4).map(tuple), NUMBERS, NUMBERS, NUMBERS, NUMBERS
)


def transcripts_of(piece: Slice) -> st.SearchStrategy[SliceTranscript]:
    return st.builds(
        SliceTranscript,
        media_id=st.just(piece.media_id),
        slice_index=st.just(piece.index),
        language=TEXTS,
        language_probability=NUMBERS,
        segments=st.lists(SEGMENTS, max_size=3).map(tuple),
        outcome=st.sampled_from(Outcome),
        reason=TEXTS,
        attempts=WHOLES,
        engine_ms=WHOLES,
    )


UPLOADS = st.builds(
    MediaUploaded,
    course_id=KEYS,
    uri=TEXTS.filter(str.strip),
    media_id=st.none() | KEYS,
    title=st.none() | TEXTS,
    language=LANGUAGE,
    priority=st.sampled_from(Priority),
    audio_track=st.none() | st.integers(1, 2**53 - 1),
)
SPANS = st.tuples(WHOLES, WHOLES).map(lambda ends: Span(min(ends), max(ends)))
PLANS = st.builds(
    MediaPlan,
    media_id=KEYS,
    slicing=KEYS,
    asr=KEYS,
    slice_count=WHOLES,
    duration_ms=WHOLES,
    missing=st.lists(SPANS, max_size=3).map(tuple),
    warnings=st.lists(TEXTS, max_size=3).map(tuple),
    slicing_ms=WHOLES,
)
COMPLETIONS = st.builds(
    TranscriptsCompleted,
    course_id=KEYS,
    media_id=KEYS,
    title=TEXTS,
    language=TEXTS,
    duration_ms=WHOLES,
    speech_ms=WHOLES,
    cues=WHOLES,
    violations=WHOLES,
    filtered_ms=WHOLES,
    failed_ms=WHOLES,
    files=st.lists(TEXTS, max_size=3).map(tuple),
)


@given(UPLOADS | COMPLETIONS)
def test_messages_for_other_systems_come_back_as_they_were_sent(message: Message) -> None:
    assert READERS[type(message)](encode(message)) == message


@given(PLANS, KEYS)
def test_a_plan_comes_back_from_its_end_mark_on_either_topic(plan: MediaPlan, course_id: str) -> None:
    sent = encode(MediaSliced.of(plan, course_id))
    for read in (messages.decode_audio_topic, messages.decode_transcript_topic):
        back = read(sent)
        assert isinstance(back, MediaSliced)
        assert (back.to_plan(), back.course_id) == (plan, course_id)
        assert encode(back) == sent


@settings(max_examples=50)
@given(slices(longest_ms=300), LANGUAGE, st.dictionaries(TEXTS, TEXTS, max_size=2), st.sampled_from(Priority))
def test_a_slice_comes_back_from_its_message_sample_for_sample(
    piece: Slice, language: str | None, prompts: dict[str, str], priority: Priority
) -> None:
    samples = np.resize(tone(), piece.span.duration_ms * SAMPLES_PER_MS)
    sent = messages.slice_ready(
        SliceAudio(piece, samples),
        course_id="maths-1",
        language=language,
        prompts=prompts,
        model="base",
        slicing=SLICING,
        asr=ASR,
        priority=priority,
        codec="flac",
    )
    back = messages.decode_audio_topic(encode(sent))
    assert back == sent
    assert isinstance(back, SliceReady)
    request = back.to_request()
    assert (request.audio.slice, request.language, request.prompts) == (piece, language, prompts)
    np.testing.assert_array_equal(request.audio.samples, samples)


@given(st.data(), slices(), KEYS)
def test_a_transcript_comes_back_from_its_message_with_the_slice_it_belongs_to(
    data: st.DataObject, piece: Slice, engine: str
) -> None:
    transcript = data.draw(transcripts_of(piece))
    ready = a_slice_ready(
        media_id=piece.media_id,
        slice_index=piece.index,
        start_ms=piece.span.start_ms,
        end_ms=piece.span.end_ms,
        boundary=piece.boundary,
        speech=tuple((span.start_ms, span.end_ms) for span in piece.speech),
    )
    back = messages.decode_transcript_topic(encode(messages.slice_transcribed(ready, transcript, engine)))
    assert isinstance(back, SliceTranscribed)
    assert back.course_id == ready.course_id
    assert back.to_value() == TranscribedSlice(SLICING, ASR, engine, piece, transcript)


# What is refused

FIELDS: dict[str, tuple[Callable[..., Message], dict[str, Any], str]] = {
    "course_id empty": (an_upload, {"course_id": ""}, "course_id: has 0 characters; give 1 to 200"),
    "course_id long": (an_upload, {"course_id": "课" * 201}, "course_id: has 201 characters; give 1 to 200"),
    "course_id odd": (an_upload, {"course_id": "maths\n1"}, r"course_id: holds '\\n'; give printable"),
    "media_id odd": (an_upload, {"media_id": "a\0"}, r"media_id: holds '\\x00'"),
    "media_id empty": (an_upload, {"media_id": ""}, "media_id: has 0 characters"),
    "uri empty": (an_upload, {"uri": " "}, "uri: is empty; say where the media lies"),
    "language": (an_upload, {"language": "zh-CN"}, "language: 'zh-CN' is no language that Whisper knows; use zh, en"),
    "audio_track": (an_upload, {"audio_track": 0}, "audio_track: 0 is no audio track; count from 1"),
    "slice backward": (a_slice_ready, {"end_ms": 90_049}, "start_ms, end_ms: 90050..90049 ms does not run forward"),
    "slice long": (a_slice_ready, {"end_ms": 120_051}, "end_ms: the slice takes 30001 ms; 30000 ms is the longest"),
    "speech before": (a_slice_ready, {"speech": ((90_049, 90_060),)}, "speech: 90049..90060 ms lies outside"),
    "speech behind": (a_slice_ready, {"speech": ((90_060, 90_301),)}, "speech: 90060..90301 ms lies outside"),
    "speech backward": (a_slice_ready, {"speech": ((90_080, 90_070),)}, "speech: 90080..90070 ms does not run"),
    "slice's language": (a_slice_ready, {"language": "auto"}, "language: 'auto' is no language"),
    "fingerprint": (a_slice_ready, {"slicing": ""}, "slicing: has 0 characters"),
    "model": (a_slice_ready, {"model": ""}, "model: has 0 characters"),
}


@pytest.mark.parametrize("case", FIELDS)
def test_a_message_that_holds_something_impossible_cannot_be_made_or_read(case: str) -> None:
    make, changes, said = FIELDS[case]
    with pytest.raises(InvalidInputError, match=f"^{said}"):
        make(**changes)
    fields = msgspec.to_builtins(make(), builtin_types=(bytes,)) | changes
    pack = msgspec.json.encode if make is an_upload else msgspec.msgpack.encode
    with pytest.raises(InvalidInputError, match=said):
        READERS[type(make())](pack(fields))


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize(
    ("version", "said"),
    [
        (2, "schema version 2, this program reads 1: upgrade it"),
        (0, "schema version 0 does not exist; this program reads 1"),
        ("1", "schema_version: expected `int`, got `str`; give a number"),
    ],
)
def test_a_message_of_another_version_is_refused_though_its_fields_are_unknown(
    name: str, version: object, said: str
) -> None:
    read = READERS[type(EXAMPLES[name]())]
    pack = msgspec.json.encode if name.endswith("json") else msgspec.msgpack.encode
    with pytest.raises(InvalidInputError, match=said):
        read(pack({"schema_version": version, "kind": "something new"}))


def test_a_message_of_another_topic_is_refused_and_its_kind_named() -> None:
    with pytest.raises(InvalidInputError, match=r"audio\.slices: kind: invalid value 'transcript'"):
        messages.decode_audio_topic(encode(a_transcript(None, None)))
    with pytest.raises(InvalidInputError, match=r"slice\.transcripts: kind: invalid value 'slice'"):
        messages.decode_transcript_topic(encode(a_slice_ready()))


def test_damaged_audio_is_found_when_it_is_decoded() -> None:
    audio = bytearray((GOLDEN / "tone.flac").read_bytes())
    audio[-100] ^= 1
    with pytest.raises(InvalidInputError, match="the audio"):
        a_slice_ready(audio=bytes(audio)).to_request()


def test_audio_that_is_shorter_than_its_slice_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="the audio has 4000 samples, but its slice has 4016"):
        a_slice_ready(end_ms=90_301).to_request()


@pytest.mark.parametrize("chance", [float("nan"), float("inf"), 1.5, -0.1])
def test_a_chance_that_is_none_is_refused(chance: float) -> None:
    with pytest.raises(InvalidInputError, match="float"):
        messages.decode_transcript_topic(encode(a_transcript(Ending(chance, 0.5, 90), None)))


def test_a_name_that_is_no_text_is_not_sent() -> None:
    with pytest.raises(InvalidInputError, match=r"holds '\\udce9', which is no character"):
        encode(an_upload(title="caf\udce9"))


# What strangers write


def uploaded(**fields: object) -> MediaUploaded:
    return messages.decode_uploaded(json.dumps({"course_id": "maths-1", "uri": "file:///1.mp4"} | fields).encode())


def test_a_course_and_a_uri_are_enough() -> None:
    assert uploaded() == MediaUploaded("maths-1", "file:///1.mp4")


def test_fields_that_this_program_does_not_know_are_ignored() -> None:
    assert uploaded(sent_by="lms", tags=[{"a": None}]) == uploaded()


def test_null_says_the_same_as_leaving_an_optional_field_out() -> None:
    assert uploaded(media_id=None, title=None, language=None, audio_track=None) == uploaded()


def test_auto_means_that_the_language_is_to_be_detected() -> None:
    assert uploaded(language="auto").language is None


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "media.uploaded: input data was truncated"),
        (b"file:///1.mp4", "media.uploaded: JSON is malformed"),
        (b"[]", "media.uploaded: expected `object`, got `array`"),
        (b'{"uri": "x"}', "missing required field `course_id`; give a text of 1 to 200 characters"),
        (b'{"course_id": "c"}', "missing required field `uri`; give where the media lies, e.g. file:///"),
        (b'{"course_id": 7, "uri": "x"}', "course_id: expected `str`, got `int`; give a text of 1 to 200 characters"),
        (b'{"course_id": "c", "uri": "x", "priority": "high"}', "'high'; give urgent, normal, bulk"),
        (b'{"course_id": "c", "uri": "x", "audio_track": "2"}', "audio_track: expected `int | null`, got `str`; give"),
        (b'{"course_id": "c", "uri": "\xff"}', "invalid UTF-8"),
        (b'{"course_id": "c", "uri": "x", "note": ' + b"[" * 100_000, "recursion"),
        (b'{"course_id": "c", "uri": "x", "title": "\\ud800"}', "media.uploaded: "),
    ],
)
def test_what_is_no_announcement_is_refused_with_a_hint(data: bytes, said: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        messages.decode_uploaded(data)
    assert said.lower() in caught.value.reason.lower()


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
NEARLY_UPLOADED = st.fixed_dictionaries(
    {},
    optional={
        "course_id": KEYS | ANYTHING,
        "uri": TEXTS | ANYTHING,
        "media_id": KEYS | ANYTHING,
        "title": ANYTHING,
        "language": LANGUAGE | ANYTHING,
        "priority": st.sampled_from(Priority) | ANYTHING,
        "audio_track": st.integers(-2, 9) | ANYTHING,
        "schema_version": st.integers(0, 2) | ANYTHING,
        "note": ANYTHING,
    },
)


def check_refused_or_valid(read: Reader, data: bytes) -> None:
    """A reason must fit on one line of a log and into a header; what is read can be written and read again."""
    try:
        message = read(data)
    except InvalidInputError as error:
        assert error.reason.isprintable()  # noqa: PT017 - either outcome is right
        assert len(error.reason) < 400  # noqa: PT017
        return
    written = encode(message)
    assert encode(read(written)) == written


@settings(max_examples=300)
@given(ANYTHING | NEARLY_UPLOADED)
def test_any_json_is_refused_in_one_line_or_is_a_valid_announcement(document: object) -> None:
    check_refused_or_valid(messages.decode_uploaded, json.dumps(document).encode())


@pytest.mark.parametrize(
    "read",
    [
        messages.decode_uploaded,
        messages.decode_audio_topic,
        messages.decode_transcript_topic,
        messages.decode_completed,
    ],
)
@given(st.binary(max_size=200))
def test_any_bytes_are_refused_in_one_line_or_are_a_valid_message(read: Reader, data: bytes) -> None:
    check_refused_or_valid(read, data)


@pytest.mark.parametrize("name", EXAMPLES)
@settings(max_examples=200)
@given(st.data())
def test_a_damaged_message_is_refused_in_one_line_or_is_a_valid_message(name: str, data: st.DataObject) -> None:
    whole = (GOLDEN / name).read_bytes()
    # The audio has its own test: here, what is around it.
    near = st.integers(0, min(len(whole), 500) - 1) | st.integers(max(0, len(whole) - 40), len(whole) - 1)
    damaged = bytearray(whole)
    for at in data.draw(st.lists(near, min_size=1, max_size=3)):
        damaged[at] ^= 1 << data.draw(st.integers(0, 7))
    check_refused_or_valid(READERS[type(EXAMPLES[name]())], bytes(damaged[: data.draw(st.none() | near)]))


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_message_cut_off_anywhere_is_refused(name: str) -> None:
    whole = (GOLDEN / name).read_bytes()
    for end in range(0, len(whole), 1 + len(whole) // 300):
        with pytest.raises(InvalidInputError):
            READERS[type(EXAMPLES[name]())](whole[:end])


def test_a_wrong_value_of_a_megabyte_is_not_repeated_in_the_reason() -> None:
    for field in ("course_id", "language", "priority", "audio_track"):
        with pytest.raises(InvalidInputError) as caught:
            uploaded(**{field: "长\n" * 500_000})
        assert len(caught.value.reason) < 400
