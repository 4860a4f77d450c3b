"""The fused engine with the real weights of Whisper, against the reference engine and on odd slices.

In 32 bits, which any processor computes, unless it says otherwise.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import pytest
from openvino import Type
from rapidfuzz.distance import Levenshtein
from threadpoolctl import ThreadpoolController

from pipeline.assembly import present_model
from pipeline.decoding import decode, find_ffmpeg
from pipeline.engines.faster_whisper import FasterWhisperEngine
from pipeline.engines.fused import FusedEngine
from pipeline.engines.openvino_graphs import Arithmetic
from pipeline.engines.openvino_whisper import OpenVinoWhisper, load_fused
from pipeline.engines.whisper_weights import WhisperWeights, load_weights
from pipeline.errors import RetriableError, UsageError
from pipeline.media import choose_track, probe
from pipeline.settings import settings_from
from pipeline.transcription import Decoding, Hypothesis, Request
from pipeline.values import Boundary, Samples, Slice, SliceAudio, Span

PROMPTS = {"zh": "大家好，今天我们开始上课。", "en": "Hello, and welcome. Today we speak of physics."}
SPANS = {
    "zh_physics_yunxi": (Span(500, 8_000), Span(8_000, 11_500)),
    "zh_biology_xiaoyi": (Span(500, 5_700),),
    "en_physics_michael": (Span(500, 6_400),),
}
Sounds = dict[str, Samples]


def model_folder(name: str) -> Path:
    try:
        return present_model(name, settings_from(os.environ), print).folder
    except UsageError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def base() -> Path:
    return model_folder("base")


@pytest.fixture(scope="module")
def weights(base: Path) -> WhisperWeights:
    return load_weights(base)


@pytest.fixture(scope="module")
def engine(base: Path) -> FusedEngine:
    return load_fused(base, "fused", arithmetic="f32", threads=2)


@pytest.fixture(scope="module")
def half(weights: WhisperWeights) -> OpenVinoWhisper:
    """As on the processors that are fast at it; the others compute it as they can."""
    return OpenVinoWhisper(weights, Arithmetic("bf16", int8_decoder=True), threads=2)


@pytest.fixture(scope="module")
def exact(weights: WhisperWeights) -> OpenVinoWhisper:
    """Without 8-bit weights, so that nothing is rounded by what else is in the batch."""
    return OpenVinoWhisper(weights, Arithmetic("f32", int8_decoder=False), threads=2)


@pytest.fixture(scope="module")
def tiled(weights: WhisperWeights) -> OpenVinoWhisper:
    """Laid out as for AMX, computed as this processor can."""
    return OpenVinoWhisper(weights, Arithmetic("f32", int8_decoder=False, tiles=True), threads=2)


@pytest.fixture(scope="module")
def sounds(shared_data: Path) -> Sounds:
    return {name: sound_of(shared_data / "lectures" / f"{name}.mp4") for name in SPANS}


@pytest.fixture(scope="module")
def requests(sounds: Sounds) -> list[Request]:
    """Four slices of 3 to 8 s in two languages; prompts of two lengths."""
    spans = [(name, span) for name, each in SPANS.items() for span in each]
    return [request(sounds, name, span, index) for index, (name, span) in enumerate(spans)]


@pytest.fixture(scope="module")
def reference(base: Path, requests: Sequence[Request]) -> list[Hypothesis]:
    engine = FasterWhisperEngine(base, "reference", device="cpu", compute_type="float32", threads=2)
    return engine.transcribe(requests, Decoding(beam_size=3))


@pytest.fixture(scope="module")
def heard(engine: FusedEngine, requests: Sequence[Request]) -> list[Hypothesis]:
    return engine.transcribe(requests, Decoding(beam_size=3))


def sound_of(path: Path) -> Samples:
    info = probe(path)
    track = choose_track(info, None, None).track
    assert track
    with decode(path, info, track, ffmpeg=find_ffmpeg()) as decoding:
        return np.concatenate([block.samples for block in decoding])[: 40 * 16_000]


def request(sounds: Sounds, name: str, span: Span, index: int = 0, language: str | None = None) -> Request:
    piece = Slice(name, index, span, Boundary.SILENCE, (span,))
    return Request(
        SliceAudio(piece, sounds[name][span.start_ms * 16 : span.end_ms * 16]), language or name[:2], PROMPTS
    )


def texts(hypotheses: Sequence[Hypothesis]) -> list[str]:
    return [hypothesis.segment.text for hypothesis in hypotheses]


def error_rate(heard: Sequence[Hypothesis], reference: Sequence[Hypothesis]) -> float:
    pairs = list(zip(texts(heard), texts(reference), strict=True))
    return sum(Levenshtein.distance(*pair) for pair in pairs) / sum(len(other) for _, other in pairs)


def start_errors_ms(heard: Hypothesis, reference: Hypothesis) -> Iterator[int]:
    """Of the words that both have."""
    words, others = heard.segment.words, reference.segment.words
    for run in Levenshtein.opcodes([word.text for word in words], [word.text for word in others]):
        if run.tag == "equal":
            for at in range(run.src_end - run.src_start):
                yield abs(words[run.src_start + at].start_ms - others[run.dest_start + at].start_ms)


def as_float32(tensor: Any) -> np.ndarray:
    """Numpy knows no bfloat16: it is the upper half of a float32."""
    if tensor.element_type == Type.bf16:
        return (tensor.data.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return np.array(tensor.data)


def memory_of_reference(encoded: np.ndarray, weights: WhisperWeights, layer: int) -> tuple[np.ndarray, np.ndarray]:
    """Keys, scaled, and values of one layer: ``(heads, frames, size)`` each."""
    name = f"decoder/layer_{layer}/attention/linear_1"
    both = encoded @ weights[f"{name}/weight"].T + weights[f"{name}/bias"]
    size = weights.width // weights.heads
    keys, values = both.reshape(len(encoded), 2, weights.heads, size).transpose(1, 2, 0, 3)
    return keys * size**-0.5, values


def test_the_memory_of_a_sound_is_the_references(
    base: Path,
    weights: WhisperWeights,
    sounds: Sounds,
    exact: OpenVinoWhisper,
    half: OpenVinoWhisper,
    tiled: OpenVinoWhisper,
) -> None:
    from faster_whisper.feature_extractor import FeatureExtractor

    mel = FeatureExtractor()(sounds["zh_physics_yunxi"][: 30 * 16_000])[:, :3_000].astype(np.float32)
    whisper = ctranslate2.models.Whisper(str(base), compute_type="float32", intra_threads=2)
    encoded = np.asarray(whisper.encode(ctranslate2.StorageView.from_array(mel[None])))[0]
    for runtime, bound in ((exact, 1e-3), (tiled, 1e-3), (half, 5e-2)):
        memory = runtime.encode(mel)
        assert memory.frames == 1_500
        for layer in (0, weights.decoder_layers - 1):
            for name, expected in zip(("keys", "values"), memory_of_reference(encoded, weights, layer), strict=True):
                found = as_float32(memory.tensors[f"{name}.{layer}"])[0]
                if name == "keys" and runtime is not tiled:  # (heads, seconds, size, frames of a second)
                    found = found.transpose(0, 1, 3, 2).reshape(expected.shape)
                assert np.linalg.norm(found - expected) / np.linalg.norm(expected) < bound


def test_log_mel_features_are_made_by_one_thread(
    base: Path, engine: FusedEngine, requests: Sequence[Request], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others would spin beside the encoder."""
    openblas = ThreadpoolController().select(internal_api="openblas")
    reference = FasterWhisperEngine(base, "reference", device="cpu", compute_type="int8", threads=2)
    seen: list[set[int]] = []

    def recorded(extract: Callable[[Samples], Any]) -> Callable[[Samples], Any]:
        def features(samples: Samples) -> Any:
            seen.append({library["num_threads"] for library in openblas.info()})
            return extract(samples)

        return features

    monkeypatch.setattr(engine, "_features", recorded(engine._features))
    monkeypatch.setattr(reference._model, "feature_extractor", recorded(reference._model.feature_extractor))
    with openblas.limit(limits=2):
        for each in (engine, reference):
            each.look(requests[:1], with_sound=False)
    assert seen == [{1}, {1}]


def test_texts_and_their_measures_are_the_references(heard: list[Hypothesis], reference: list[Hypothesis]) -> None:
    assert error_rate(heard, reference) < 0.05
    for ours, theirs in zip(heard, reference, strict=True):
        assert abs(ours.segment.avg_logprob - theirs.segment.avg_logprob) < 0.1
        # It depends on how much silence follows the slice, which the reference fills up to 30 s.
        assert abs(ours.segment.no_speech_probability - theirs.segment.no_speech_probability) < 0.15


def test_words_begin_where_the_references_do(heard: list[Hypothesis], reference: list[Hypothesis]) -> None:
    pairs = zip(heard, reference, strict=True)
    errors = [error for pair in pairs for error in start_errors_ms(*pair)]
    assert len(errors) > 30
    assert np.median(errors) < 60


def test_each_word_tells_how_likely_a_mark_was_after_it(
    heard: list[Hypothesis], reference: list[Hypothesis], requests: Sequence[Request]
) -> None:
    assert all(word.ending is None for one in reference for word in one.segment.words)
    with_mark, without = [], []
    for one, asked in zip(heard, requests, strict=True):
        for word in one.segment.words:
            assert word.ending
            assert word.ending.quiet_ms <= asked.audio.slice.span.duration_ms
            (without if word.text.strip().isalnum() else with_mark).append(word.ending.inside + word.ending.end)
    assert len(with_mark) > 4
    assert max(map(max, (with_mark, without))) <= 1.001
    assert np.median(with_mark) > 0.6
    assert np.median(without) < 0.05


def test_in_bfloat16_the_text_is_nearly_the_same(
    base: Path, half: OpenVinoWhisper, requests: Sequence[Request], heard: list[Hypothesis]
) -> None:
    found = FusedEngine([half], base, "half").transcribe(requests, Decoding(beam_size=3))
    assert error_rate(found, heard) < 0.05


def test_keys_laid_out_for_tiles_give_the_same_texts_and_words(
    base: Path, exact: OpenVinoWhisper, tiled: OpenVinoWhisper, requests: Sequence[Request]
) -> None:
    expected, found = (
        FusedEngine([each], base, "").transcribe(requests, Decoding(beam_size=3)) for each in (exact, tiled)
    )
    assert texts(found) == texts(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.segment.avg_logprob == pytest.approx(other.segment.avg_logprob, abs=1e-4)
        assert [word.start_ms for word in one.segment.words] == [word.start_ms for word in other.segment.words]


@pytest.mark.parametrize(
    ("flag", "arithmetic", "tiles"),
    [("amx_bf16", "bf16", True), ("avx512_bf16", "bf16", False), ("amx_bf16", "f32", False)],
)
def test_keys_are_laid_out_for_tiles_where_the_processor_has_them(
    base: Path, monkeypatch: pytest.MonkeyPatch, flag: str, arithmetic: str, tiles: bool
) -> None:
    asked: list[Arithmetic] = []

    def runtime(_weights: WhisperWeights, arithmetic: Arithmetic, *_: int) -> OpenVinoWhisper:
        asked.append(arithmetic)
        raise RuntimeError("seen")

    monkeypatch.setattr("pipeline.engines.openvino_whisper.processor_flags", lambda: frozenset({flag}))
    monkeypatch.setattr("pipeline.engines.openvino_whisper.OpenVinoWhisper", runtime)
    with pytest.raises(UsageError, match="seen"):
        load_fused(base, "fused", arithmetic=arithmetic, threads=2)
    assert [each.tiles for each in asked] == [tiles]


def test_a_slice_has_the_same_text_alone_and_in_a_batch(
    base: Path, exact: OpenVinoWhisper, requests: Sequence[Request]
) -> None:
    """Though the others have prompts and sounds of other lengths, and leave the batch before it or after it."""
    engine = FusedEngine([exact], base, "exact")
    together = engine.transcribe(requests, Decoding(beam_size=3))
    alone = [engine.transcribe([one], Decoding(beam_size=3))[0] for one in requests]
    assert texts(alone) == texts(together)
    for one, among in zip(alone, together, strict=True):
        assert one.segment.avg_logprob == pytest.approx(among.segment.avg_logprob, abs=1e-3)
        starts, others = ([word.start_ms for word in each.segment.words] for each in (one, among))
        assert starts == pytest.approx(others, abs=20)


def test_the_language_is_heard(engine: FusedEngine, requests: Sequence[Request]) -> None:
    unasked = [replace(one, language=None) for one in (requests[0], requests[-1])]
    found = engine.transcribe(unasked, Decoding(beam_size=1))
    assert [one.language for one in found] == ["zh", "en"]
    assert all(one.language_probability > 0.9 for one in found)


def test_a_sampled_text_does_not_depend_on_the_batch(
    base: Path, exact: OpenVinoWhisper, requests: Sequence[Request]
) -> None:
    engine, drawn = FusedEngine([exact], base, "exact"), Decoding(beam_size=1, temperature=0.4, use_prompt=False)
    together = texts(engine.transcribe(requests[1:3], drawn))
    assert together == [texts(engine.transcribe([one], drawn))[0] for one in requests[1:3]]


@pytest.mark.parametrize("span", [Span(900, 1_100), Span(0, 30_000)], ids=["200 ms", "30 s"])
def test_the_shortest_and_the_longest_slice_are_heard(engine: FusedEngine, sounds: Sounds, span: Span) -> None:
    (found,) = engine.transcribe([request(sounds, "zh_physics_yunxi", span)], Decoding(beam_size=1, use_prompt=False))
    words = found.segment.words
    assert all(span.start_ms <= word.start_ms <= word.end_ms <= span.end_ms for word in words)
    if span.duration_ms == 30_000:
        assert len(found.segment.text) > 80
        assert words[-1].end_ms > 25_000


def test_nothing_to_hear_gives_nothing(engine: FusedEngine) -> None:
    assert engine.transcribe([], Decoding()) == []


def test_a_wider_beam_than_the_graph_answers_is_refused(engine: FusedEngine, requests: Sequence[Request]) -> None:
    with pytest.raises(UsageError, match="beam of 5"):
        engine.transcribe(requests[1:2], Decoding(beam_size=6))


def test_a_language_that_the_model_lacks_is_refused(engine: FusedEngine, requests: Sequence[Request]) -> None:
    with pytest.raises(UsageError, match="yue"):
        engine.transcribe([replace(requests[0], language="yue")], Decoding())


def test_a_model_of_english_only_hears_english_and_refuses_the_rest(requests: Sequence[Request]) -> None:
    english = load_fused(model_folder("tiny.en"), "tiny", arithmetic="f32", threads=2)
    (found,) = english.transcribe([replace(requests[-1], language=None)], Decoding(beam_size=2))
    assert (found.language, found.language_probability) == ("en", 1.0)
    assert len(found.segment.words) > 8
    assert found.segment.avg_logprob > -0.6
    with pytest.raises(UsageError, match="English only"):
        english.transcribe(requests[:1], Decoding())


class Failing:
    """A runtime that has no memory left."""

    def __init__(self, weights: WhisperWeights) -> None:
        self.weights = weights

    def encode(self, mel: np.ndarray) -> Any:  # noqa: ARG002
        raise RuntimeError("bad allocation")

    begin: Callable[..., Any]
    logits: Callable[..., Any]


def test_an_error_of_the_runtime_asks_for_another_try(
    base: Path, weights: WhisperWeights, requests: Sequence[Request]
) -> None:
    with pytest.raises(RetriableError, match="2 slices: bad allocation"):
        FusedEngine([Failing(weights)], base, "failing").transcribe(requests[:2], Decoding())


def test_a_folder_without_a_tokenizer_is_refused(weights: WhisperWeights, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"tokenizer\.json"):
        FusedEngine([Failing(weights)], tmp_path, "failing")
