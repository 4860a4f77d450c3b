"""Cues by property: what holds for any words at any times, and what sane speech is promised."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.cue_profiles import half_units
from pipeline.cue_solving import EARLY_MS, LATE_MS
from pipeline.cues import check_cues, lay_out, make_cues, profile_for
from pipeline.postprocess.term_spans import spotter
from pipeline.subtitle_profiles import BUILT_IN
from pipeline.values import Cue, Sentence, Word

CHINESE = [*"我们勾股定理的了直角三形好证明「」、。", "\uff0c"]
LATIN = [
    "the",
    "a",
    "theorem",
    "of",
    "proof",
    "Python",
    "3.14",
    "x",
    "and",
    "don't",
    "well-known",
    "sides,",
    "end.",
]


def spaced(words: list[str]) -> list[str]:
    return [f" {word}" for word in words]


chinese_tokens = st.lists(st.sampled_from([*CHINESE, " Python", "API", "7"]), min_size=1, max_size=40)
latin_tokens = st.lists(st.sampled_from(LATIN), min_size=1, max_size=20).map(spaced)


@st.composite
def transcripts(draw: st.DrawFn, *, sane: bool) -> list[Sentence]:
    """Sentences in order: sane ones at rates that people speak at, others with any times whatever."""
    sentences: list[Sentence] = []
    languages = st.sampled_from(["zh", "en"])
    language = draw(languages)
    clock_ms = draw(st.integers(600, 3000))
    for _ in range(draw(st.integers(1, 4))):
        language = language if sane else draw(languages)
        tokens = draw(chinese_tokens if language == "zh" else latin_tokens)
        words, clock_ms = _spoken(draw, tokens, clock_ms, sane=sane)
        sentences.append(Sentence(words[0].start_ms, words[-1].end_ms, "", language, tuple(words)))
        clock_ms += draw(st.integers(900, 2500) if sane else st.integers(-500, 2500))
    return sentences


def _spoken(draw: st.DrawFn, tokens: list[str], clock_ms: int, *, sane: bool) -> tuple[list[Word], int]:
    words = []
    for token in tokens:
        units = max(1, len(token))
        duration_ms = draw(st.integers(130, 300) if sane else st.integers(0, 400)) * units
        start_ms = clock_ms if sane else max(0, clock_ms + draw(st.integers(-300, 300)))
        words.append(Word(token, start_ms, start_ms + duration_ms, 0.9))
        clock_ms += duration_ms
    return words, clock_ms


def text_of(words: list[Word]) -> str:
    return "".join("".join(word.text.split()) for word in words)


def words_of(sentences: list[Sentence]) -> list[Word]:
    return [word for sentence in sentences for word in sentence.words]


def shown(cues: tuple[Cue, ...]) -> str:
    return "".join("".join(cue.text.split()) for cue in cues)


@given(transcripts(sane=False), st.integers(1, 60_000))
@settings(deadline=None, max_examples=60)
def test_every_word_is_shown_exactly_once_and_in_order(sentences: list[Sentence], media_end_ms: int) -> None:
    cues, _ = make_cues(sentences, profile_for, media_end_ms)
    assert shown(cues) == text_of(words_of(sentences))


@given(transcripts(sane=False), st.integers(1, 60_000))
@settings(deadline=None, max_examples=60)
def test_cues_run_forward_never_overlap_and_end_with_the_media(sentences: list[Sentence], media_end_ms: int) -> None:
    cues, _ = make_cues(sentences, profile_for, media_end_ms)
    assert all(0 <= cue.start_ms < cue.end_ms <= media_end_ms for cue in cues)
    assert all(a.end_ms + 83 <= b.start_ms for a, b in pairwise(cues))
    assert all(cue.end_ms - cue.start_ms <= 7000 for cue in cues)
    assert all(line.strip() == line != "" for cue in cues for line in cue.lines)


@given(transcripts(sane=False))
@settings(deadline=None, max_examples=60)
def test_a_line_is_too_long_only_for_a_single_word(sentences: list[Sentence]) -> None:
    cues, _ = make_cues(sentences, lambda _: profile_for("zh"), 120_000)
    single = {word.text.strip() for word in words_of(sentences)}
    lines = [line for cue in cues for line in cue.lines]
    assert all(half_units(line, profile_for("zh")) <= 32 or line in single for line in lines)


@given(transcripts(sane=True))
@settings(deadline=None, max_examples=60)
def test_sane_speech_breaks_no_rule(sentences: list[Sentence]) -> None:
    media_end_ms = sentences[-1].end_ms + 3000
    cues, violations = make_cues(sentences, profile_for, media_end_ms)
    assert violations == ()
    assert check_cues(cues, profile_for(sentences[0].language), media_end_ms=media_end_ms) == ()


@given(transcripts(sane=True), st.sampled_from(sorted(BUILT_IN)))
@settings(deadline=None, max_examples=60)
def test_slow_speech_breaks_no_rule_of_any_profile(sentences: list[Sentence], name: str) -> None:
    slow = [_slower(sentence) for sentence in sentences]
    cues, violations = make_cues(slow, BUILT_IN[name].cues_for, slow[-1].end_ms + 5000)
    assert violations == ()
    assert shown(cues) == text_of(words_of(slow))


@given(
    transcripts(sane=False), st.sampled_from(sorted(BUILT_IN)), st.lists(st.sampled_from(CHINESE + LATIN), max_size=3)
)
@settings(deadline=None, max_examples=60)
def test_every_profile_shows_every_word_once_whatever_the_terms(
    sentences: list[Sentence], name: str, terms: list[str]
) -> None:
    sheet = lay_out(sentences, BUILT_IN[name].cues_for, 60_000, spotter(terms))
    assert shown(sheet.cues) == text_of(words_of(sentences))
    assert sum(sheet.word_counts) == len(words_of(sentences))
    assert {violation.rule for violation in sheet.violations} <= {
        "too_fast",
        "too_short",
        "line_too_long",
        "too_many_lines",
    }


@given(transcripts(sane=True), st.data())
@settings(deadline=None, max_examples=60)
def test_no_break_falls_inside_a_term(sentences: list[Sentence], data: st.DataObject) -> None:
    """A term is any run of two to five words of one sentence, told by where it stands."""
    chosen = data.draw(st.sampled_from(sentences))
    first = data.draw(st.integers(0, max(0, len(chosen.words) - 2)))
    term = "".join(word.text for word in chosen.words[first : first + 5]).strip()
    cues, _ = make_cues(sentences, profile_for, sentences[-1].end_ms + 3000, spotter((term,)))
    joined = " ".join(" ".join(cue.lines) for cue in cues)
    assert term in joined or term not in " ".join(shown_whole(sentence) for sentence in sentences)


def shown_whole(sentence: Sentence) -> str:
    return "".join(word.text for word in sentence.words).strip()


def _slower(sentence: Sentence) -> Sentence:
    words = tuple(replace(word, start_ms=2 * word.start_ms, end_ms=2 * word.end_ms) for word in sentence.words)
    return replace(sentence, start_ms=words[0].start_ms, end_ms=words[-1].end_ms, words=words)


@given(transcripts(sane=True))
@settings(deadline=None, max_examples=60)
def test_a_cue_starts_with_a_word_or_is_moved_within_the_stated_bounds(sentences: list[Sentence]) -> None:
    cues, _ = make_cues(sentences, profile_for, sentences[-1].end_ms + 3000)
    starts = [word.start_ms for word in words_of(sentences)]
    assert all(any(-EARLY_MS <= cue.start_ms - start <= LATE_MS for start in starts) for cue in cues)


@given(transcripts(sane=True))
@settings(deadline=None, max_examples=60)
def test_sentences_that_can_stand_alone_each_start_a_cue(sentences: list[Sentence]) -> None:
    # All are at least 900 ms apart, so each can be read before the next begins.
    cues, _ = make_cues(sentences, profile_for, sentences[-1].end_ms + 3000)
    assert {sentence.start_ms for sentence in sentences} <= {cue.start_ms for cue in cues}


@given(st.lists(st.text(max_size=12), max_size=20))
@settings(deadline=None, max_examples=60)
def test_hostile_texts_lose_nothing_but_white_space(texts: list[str]) -> None:
    words = tuple(Word(text, index * 200, index * 200 + 150, 0.9) for index, text in enumerate(texts))
    for language in ("zh", "en", "ja", ""):
        cues, _ = make_cues([Sentence(0, 4000, "", language, words)], profile_for, 60_000)
        assert shown(cues) == text_of(list(words))
