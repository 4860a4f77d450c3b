"""The transformers library as a peer of ``bench.engine``: the same weights, scaled dot product attention, ``generate``.

It is no part of the product: ``pip install torch transformers`` beside it. The weights come out of the CTranslate2
folder. With word times transformers computes all attention by its own plain code (``return_token_timestamps``, 5.17).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from transformers import GenerationConfig, WhisperConfig, WhisperFeatureExtractor, WhisperForConditionalGeneration

from bench.engine_systems import Heard, Run, Task
from bench.values import Timed
from pipeline.engines.special_tokens import SpecialTokens
from pipeline.engines.torch_words import Splitter
from pipeline.engines.whisper_weights import WhisperWeights, load_weights
from pipeline.transcription import Request
from pipeline.values import SAMPLE_RATE_HZ

_FEED_FORWARD = 4
_MAX_TOKENS = 224


def load(task: Task) -> Run:
    """The model on the device, in half precision on a GPU, in float32 on a CPU."""
    torch.set_num_threads(task.threads)
    weights = load_weights(task.model)
    tokenizer = Tokenizer.from_file(str(task.model / "tokenizer.json"))
    special = SpecialTokens.of(tokenizer, weights)
    made = _Model(
        network=_network(weights, task, _generation(weights, tokenizer, special)),
        features=WhisperFeatureExtractor(feature_size=weights.mels),
        splitter=Splitter(tokenizer, weights.end),
        end=weights.end,
    )

    def run(requests: Sequence[Request], batch: int, with_words: bool) -> list[Heard]:
        found: list[Heard] = []
        for at in range(0, len(requests), batch):
            found += _batch(made, requests[at : at + batch], task, with_words)
        return found

    return run


@dataclass(frozen=True, slots=True)
class _Model:
    network: Any
    features: Any
    splitter: Splitter
    end: int


def _batch(model: _Model, requests: Sequence[Request], task: Task, with_words: bool) -> list[Heard]:
    samples = [request.audio.samples for request in requests]
    features = model.features(
        samples,
        sampling_rate=SAMPLE_RATE_HZ,
        return_tensors="pt",
        return_attention_mask=True,
        device=task.device,
    ).to(task.device)
    # Word times leave "eager" behind in the configuration.
    model.network.config._attn_implementation = "sdpa"
    with torch.inference_mode():
        made = model.network.generate(
            features.input_features.to(model.network.dtype),
            attention_mask=features.attention_mask,
            language=[request.language for request in requests],
            task="transcribe",
            num_beams=task.beam,
            do_sample=False,
            max_new_tokens=task.max_tokens or _MAX_TOKENS,
            return_timestamps=False,
            return_token_timestamps=with_words,
        )
    tokens = (made["sequences"] if with_words else made).cpu().tolist()
    times = made["token_timestamps"].cpu().numpy() if with_words else [None] * len(tokens)
    return [_heard(model, request, *row) for request, *row in zip(requests, tokens, times, strict=True)]


def _heard(model: _Model, request: Request, tokens: Sequence[int], starts_s: Any) -> Heard:
    places = [at for at, token in enumerate(tokens) if token < model.end]
    text = [tokens[at] for at in places]
    words = [] if starts_s is None else model.splitter.words(text, request.language or "") or []
    return Heard(
        model.splitter.text(text), tuple(_timed(words, request, [starts_s[at] for at in places] if words else []))
    )


def _timed(words: Sequence[tuple[str, int]], request: Request, starts_s: Sequence[float]) -> Iterator[Timed]:
    """Each from the start of its first token to that of the next word's."""
    from_ms, at = request.audio.slice.span.start_ms, 0
    for word, count in words:
        end = min(at + count, len(starts_s) - 1)
        yield Timed(word, from_ms + round(1000 * starts_s[at]), from_ms + round(1000 * starts_s[end]))
        at += count


def _network(weights: WhisperWeights, task: Task, generation: GenerationConfig) -> Any:
    config = WhisperConfig(
        vocab_size=weights.vocabulary,
        num_mel_bins=weights.mels,
        d_model=weights.width,
        encoder_layers=weights.encoder_layers,
        decoder_layers=weights.decoder_layers,
        encoder_attention_heads=weights.heads,
        decoder_attention_heads=weights.heads,
        encoder_ffn_dim=_FEED_FORWARD * weights.width,
        decoder_ffn_dim=_FEED_FORWARD * weights.width,
        attn_implementation="sdpa",
    )
    dtype = torch.float32 if task.device == "cpu" else getattr(torch, task.arithmetic)
    with torch.device("meta"):
        network = WhisperForConditionalGeneration(config)
    state = {name: torch.tensor(np.asarray(array)).to(task.device, dtype) for name, array in _state(weights)}
    network.load_state_dict(state | {"proj_out.weight": state["model.decoder.embed_tokens.weight"]}, assign=True)
    network.tie_weights()
    network.generation_config = generation
    return network.eval()


def _generation(weights: WhisperWeights, tokenizer: Tokenizer, special: SpecialTokens) -> GenerationConfig:
    """What the model's own generation_config.json says."""
    return GenerationConfig(
        is_multilingual=weights.is_multilingual,
        lang_to_id={f"<|{code}|>": token for code, token in special.languages.items()},
        task_to_id={"transcribe": tokenizer.token_to_id("<|transcribe|>")},
        no_timestamps_token_id=tokenizer.token_to_id("<|notimestamps|>"),
        prev_sot_token_id=tokenizer.token_to_id("<|startofprev|>"),
        alignment_heads=[list(pair) for pair in weights.alignment_heads],
        suppress_tokens=[token for token in weights.suppressed if token != special.start],
        begin_suppress_tokens=list(weights.suppressed_first),
        decoder_start_token_id=special.start,
        bos_token_id=weights.end,
        eos_token_id=weights.end,
        pad_token_id=weights.end,
        max_length=weights.context_tokens,
        median_filter_width=7,
    )


def _state(weights: WhisperWeights) -> Iterator[tuple[str, Any]]:
    """Every parameter by its name in transformers."""
    arrays = weights.arrays
    for name in ("conv1", "conv2"):
        for kind in ("weight", "bias"):
            yield f"model.encoder.{name}.{kind}", arrays[f"encoder/{name}/{kind}"]
    for part, layers in (("encoder", weights.encoder_layers), ("decoder", weights.decoder_layers)):
        yield f"model.{part}.embed_positions.weight", arrays[f"{part}/position_encodings/encodings"]
        yield from _norm(weights, f"{part}/layer_norm", f"model.{part}.layer_norm")
        for layer in range(layers):
            own, theirs = f"{part}/layer_{layer}", f"model.{part}.layers.{layer}"
            yield from _attention(weights, f"{own}/self_attention", f"{theirs}.self_attn", (("q", "k", "v"), ("out",)))
            if part == "decoder":
                parts = (("q",), ("k", "v"), ("out",))
                yield from _attention(weights, f"{own}/attention", f"{theirs}.encoder_attn", parts)
            yield from _norm(weights, f"{own}/ffn/layer_norm", f"{theirs}.final_layer_norm")
            for name, linear in (("fc1", "linear_0"), ("fc2", "linear_1")):
                for kind in ("weight", "bias"):
                    yield f"{theirs}.{name}.{kind}", arrays[f"{own}/ffn/{linear}/{kind}"]
    yield "model.decoder.embed_tokens.weight", arrays["decoder/embeddings/weight"]


def _attention(
    weights: WhisperWeights, own: str, theirs: str, parts: Sequence[Sequence[str]]
) -> Iterator[tuple[str, Any]]:
    """CTranslate2 keeps projections of the same input in one matrix."""
    yield from _norm(weights, f"{own}/layer_norm", f"{theirs}_layer_norm")
    for at, names in enumerate(parts):
        for kind in ("weight", "bias"):
            pieces = np.split(weights.arrays[f"{own}/linear_{at}/{kind}"], len(names))
            for name, piece in zip(names, pieces, strict=True):
                if (name, kind) != ("k", "bias"):  # Whisper has none; CTranslate2 has zeros
                    yield f"{theirs}.{name}_proj.{kind}", piece


def _norm(weights: WhisperWeights, own: str, theirs: str) -> Iterator[tuple[str, Any]]:
    yield f"{theirs}.weight", weights.arrays[f"{own}/gamma"]
    yield f"{theirs}.bias", weights.arrays[f"{own}/beta"]
