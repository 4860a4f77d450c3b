"""Beam search against every text there is, over a small model made of a table; and the rules it has in common with
CTranslate2."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.engines.beam_search import Rules, Step, Text, Tokens, search
from pipeline.engines.mark_tokens import MarkTokens

END = 0
WORDS = 5
MARKS = MarkTokens((1, 2), (3,))


class TableModel:
    """A model whose next token depends on the slice and the last two tokens; it remembers the texts of its rows."""

    def __init__(self, tables: Sequence[np.ndarray]) -> None:
        self.tables = tables
        self.texts: list[tuple[int, ...]] = [()] * len(tables)
        self.rows_seen: list[list[int]] = []

    def first(self) -> Step:
        return self._answer(np.arange(len(self.tables)))

    def step(self, tokens: Tokens, parents: Tokens, slices: Tokens) -> Step:
        self.texts = [(*self.texts[parent], int(token)) for token, parent in zip(tokens, parents, strict=True)]
        self.rows_seen.append(slices.tolist())
        return self._answer(slices)

    def _answer(self, slices: Tokens) -> Step:
        scores = np.stack([logprobs(self.tables[at], text) for at, text in zip(slices, self.texts, strict=True)])
        best = np.argsort(-scores, axis=1, kind="stable")
        # The attention says which text and slice it belongs to.
        marks = np.array([[[len(text), at]] for at, text in zip(slices, self.texts, strict=True)], np.float32)
        return Step(
            best, np.take_along_axis(scores, best, axis=1).astype(np.float32), marks, np.zeros((len(scores), 1))
        )


def logprobs(table: np.ndarray, text: tuple[int, ...]) -> np.ndarray:
    before, last = (0, 0, *text)[-2:]
    scores: np.ndarray = table[before, last]
    return scores - np.log(np.exp(scores).sum())


def tables(seed: int, slices: int = 1) -> list[np.ndarray]:
    """The end is made unlikely as a first token, as Whisper's is forbidden there."""
    made = np.random.default_rng(seed).normal(scale=2.0, size=(slices, WORDS, WORDS, WORDS))
    made[:, 0, 0, END] = -50.0
    return list(made)


def found(made: Sequence[np.ndarray], beam: int, max_tokens: int = 4, no_repeat: int = 0) -> list[Text]:
    model = TableModel(made)
    return search(model, model.first(), Rules(beam, END, max_tokens, no_repeat, MARKS))


def score(table: np.ndarray, text: tuple[int, ...], max_tokens: int) -> float:
    """The mean over the tokens; the end counts in the sum only, and only if there was room for it."""
    ended = (*text, END) if len(text) < max_tokens else text
    return sum(float(logprobs(table, ended[:at])[ended[at]]) for at in range(len(ended))) / len(text)


@given(st.integers(0, 10_000))
@settings(max_examples=60)
def test_a_beam_that_holds_every_text_finds_the_best_one(seed: int) -> None:
    (table,) = tables(seed)
    every = [text for size in (1, 2) for text in itertools.product(range(1, WORDS), repeat=size)]
    best = max(score(table, text, max_tokens=2) for text in every)
    (text,) = found([table], beam=WORDS**2, max_tokens=2)
    assert math.isclose(score(table, text.tokens, max_tokens=2), best, rel_tol=1e-4)


@given(st.integers(0, 10_000), st.integers(1, 5))
def test_a_slice_finds_the_same_text_alone_and_among_others(seed: int, beam: int) -> None:
    made = tables(seed, slices=4)
    together = found(made, beam, max_tokens=7)
    alone = [found([table], beam, max_tokens=7)[0] for table in made]
    assert [text.tokens for text in together] == [text.tokens for text in alone]
    assert [text.logprob for text in together] == [text.logprob for text in alone]


@given(st.integers(0, 10_000), st.integers(1, 5))
def test_every_row_of_attention_is_that_of_the_text_before_its_token(seed: int, beam: int) -> None:
    for at, text in enumerate(found(tables(seed, slices=3), beam, max_tokens=6)):
        steps, slices = text.attention[:, 0].T
        assert steps.tolist() == list(range(len(steps)))
        assert set(slices) == {at}
        assert len(steps) - len(text.tokens) in (0, 1)


@given(st.integers(0, 10_000), st.integers(1, 5), st.integers(0, 1))
def test_the_chances_of_marks_are_those_after_the_text_before_each_token(seed: int, beam: int, no_repeat: int) -> None:
    for table, text in zip(tables(seed, 3), found(tables(seed, 3), beam, 6, no_repeat), strict=True):
        assert len(text.marks) == len(text.attention)
        for at, pair in enumerate(text.marks):
            after = np.exp(logprobs(table, text.tokens[:at]))
            expected = [after[list(group)].sum() for group in (MARKS.inside, MARKS.ends)]
            assert pair == pytest.approx(expected, abs=6e-4)


@given(st.integers(0, 10_000))
def test_a_beam_of_one_takes_the_likeliest_token_each_time(seed: int) -> None:
    (table,) = tables(seed)
    greedy: tuple[int, ...] = ()
    while len(greedy) < 6 and (token := int(logprobs(table, greedy).argmax())) != END:
        greedy = (*greedy, token)
    assert found([table], beam=1, max_tokens=6)[0].tokens == greedy


@given(st.integers(0, 10_000), st.integers(1, 5))
def test_a_texts_log_probability_is_the_sum_over_its_tokens_and_the_end(seed: int, beam: int) -> None:
    (table,) = tables(seed)
    (text,) = found([table], beam)
    has_end = len(text.attention) > len(text.tokens)
    ended = (*text.tokens, END) if has_end else text.tokens
    each = [float(logprobs(table, ended[:at])[token]) for at, token in enumerate(ended)]
    assert math.isclose(text.logprob, sum(each), rel_tol=1e-4)
    assert np.allclose(text.probabilities, np.exp(each[: len(text.tokens)]), rtol=1e-4)


@given(st.integers(0, 10_000), st.integers(1, 5), st.integers(1, 6))
def test_no_text_is_longer_than_allowed(seed: int, beam: int, max_tokens: int) -> None:
    never = tables(seed, slices=2)
    for table in never:
        table[..., END] = -50.0
    assert {len(text.tokens) for text in found(never, beam, max_tokens)} == {max_tokens}


def test_a_text_that_was_cut_competes_with_those_that_ended() -> None:
    """At the limit CTranslate2 takes the open texts as they are."""
    table = np.full((WORDS, WORDS, WORDS), -30.0)
    table[0, 0, 1], table[0, 0, 2] = 0.0, -1.0
    table[0, 2, END] = 0.0  # the poorer text ends at once
    table[0, 1, 3] = table[1, 3, 4] = 0.0
    (text,) = found([table], beam=2, max_tokens=3)
    assert text.tokens == (1, 3, 4)


def test_an_end_below_the_beam_does_not_count() -> None:
    table = np.full((WORDS, WORDS, WORDS), -30.0)
    table[0, 0, 1], table[0, 0, 2] = 0.0, -4.0
    table[0, 1, 3], table[0, 1, 4], table[0, 1, END] = 1.1, 1.0, 0.9  # the end is third of a beam of two
    table[1, 3], table[1, 4] = 0.0, 0.0  # what comes next is so uncertain that ending there would have been better
    (text,) = found([table], beam=2, max_tokens=4)
    assert text.tokens[:2] in {(1, 3), (1, 4)}


def test_an_empty_text_is_taken_only_where_there_is_no_other() -> None:
    table = np.full((WORDS, WORDS, WORDS), -30.0)
    table[0, 0, END], table[0, 0, 1] = 5.0, 0.0
    table[0, 1, END] = 0.0
    assert found([table], beam=2)[0].tokens == (1,)
    (empty,) = found([table], beam=1)
    assert empty.tokens == ()
    assert empty.logprob > -0.1


@given(st.integers(0, 10_000), st.integers(1, 3), st.integers(1, 5))
def test_no_run_of_tokens_comes_twice_where_that_is_forbidden(seed: int, size: int, beam: int) -> None:
    for text in found(tables(seed, slices=2), beam, max_tokens=9 if size > 1 else 3, no_repeat=size):
        runs = [text.tokens[at : at + size] for at in range(len(text.tokens) - size + 1)]
        assert len(runs) == len(set(runs))


def test_what_forbidden_tokens_had_goes_to_the_others() -> None:
    table = np.full((WORDS, WORDS, WORDS), -30.0)
    table[..., 1] = 5.0  # a loop
    table[0, 1, 2] = table[1, 1, 2] = 0.0
    table[..., 2, END] = 9.0
    (text,) = found([table], beam=1, no_repeat=1)
    assert text.tokens == (1, 2)
    assert text.probabilities[1] > 0.99


def test_slices_that_are_done_leave_the_batch() -> None:
    made = [np.full((WORDS, WORDS, WORDS), -30.0) for _ in range(3)]
    for table, length in zip(made, (3, 1, 2), strict=True):
        for at in range(length):
            table[max(0, at - 1), at, at + 1] = 0.0
        table[max(0, length - 1), length, END] = 0.0
    model = TableModel(made)
    texts = search(model, model.first(), Rules(1, END, 9))
    assert [text.tokens for text in texts] == [(1, 2, 3), (1,), (1, 2)]
    assert model.rows_seen == [[0, 1, 2], [0, 2], [0]]
