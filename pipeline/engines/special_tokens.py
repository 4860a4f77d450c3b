"""The tokens by which Whisper is asked, and says what it hears beside words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.engines.whisper_weights import WhisperWeights
from pipeline.errors import UsageError


@dataclass(frozen=True, slots=True)
class SpecialTokens:
    """The special tokens of a model."""

    start: int
    no_speech: int
    languages: Mapping[str, int]
    """Empty for a model that speaks English only."""
    asking: int
    """How many tokens at the end of a prompt ask for the transcript. After the first, the start, the model says whether
    it hears speech."""

    @staticmethod
    def of(tokenizer: Any, weights: WhisperWeights) -> SpecialTokens:
        """Raises UsageError where ``tokenizer`` is not Whisper's."""
        from faster_whisper.tokenizer import _LANGUAGE_CODES

        def known(*names: str) -> int:
            found = [token for token in map(tokenizer.token_to_id, names) if token is not None]
            if not found:
                raise UsageError(f"the model's tokenizer.json has no {names[0]}: it is not Whisper's")
            return int(found[0])

        codes = {code: tokenizer.token_to_id(f"<|{code}|>") for code in _LANGUAGE_CODES}
        return SpecialTokens(
            start=known("<|startoftranscript|>"),
            no_speech=known("<|nospeech|>", "<|nocaptions|>"),
            languages={code: token for code, token in codes.items() if token is not None and weights.is_multilingual},
            # start, language, task, no timestamps; the English models have neither of the middle ones.
            asking=4 if weights.is_multilingual else 2,
        )
