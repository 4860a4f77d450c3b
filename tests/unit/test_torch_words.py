"""Tokens to words, as faster-whisper's tokenizer splits them."""

from __future__ import annotations

import pytest
from faster_whisper.tokenizer import Tokenizer as Reference
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from pipeline.engines.torch_words import Splitter

_LETTERS = sorted(pre_tokenizers.ByteLevel.alphabet())
_PAIRS = [("Ġ", "t"), ("h", "e"), ("æ", "ĺ"), ("Ġt", "he")]


def _tokenizer() -> Tokenizer:
    """Every byte, and a few pairs; one of them is two thirds of a character."""
    merged = [first + second for first, second in _PAIRS]
    vocabulary = {token: at for at, token in enumerate([*_LETTERS, *merged])}
    tokenizer = Tokenizer(models.BPE(vocabulary, _PAIRS))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(name) for name in ("<|endoftext|>", "<|notimestamps|>")])
    return tokenizer


_TOKENIZER = _tokenizer()
_END = int(_TOKENIZER.token_to_id("<|endoftext|>") or 0)
_SPLITTER = Splitter(_TOKENIZER, _END)


@pytest.mark.parametrize("language", ["zh", "en"])
@given(text=st.text("ab the.'é时间, \U0001f600", min_size=1))
def test_a_text_is_split_as_the_tokenizer_splits_it(language: str, text: str) -> None:
    reference = Reference(_TOKENIZER, True, task="transcribe", language=language)
    tokens = reference.encode(text)
    words, own = reference.split_to_word_tokens([*tokens, _END])
    right = [(word, len(of)) for word, of in zip(words, own, strict=True)][:-1]
    assert _SPLITTER.words(tokens, language) == right
    assert _SPLITTER.text(tokens) == text


@given(tokens=st.lists(st.integers(0, _END - 1), min_size=1, max_size=12))
def test_the_words_of_any_tokens_hold_all_of_them_or_there_are_none(tokens: list[int]) -> None:
    words = _SPLITTER.words(tokens, "zh")
    text = _SPLITTER.text(tokens)
    if words is None:
        assert "\ufffd" in text
    else:
        assert "".join(word for word, _ in words) == text
        assert sum(count for _, count in words) == len(tokens)
