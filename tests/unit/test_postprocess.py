"""The steps together, from slice transcripts to sentences."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline.errors import UsageError
from pipeline.postprocess import Glossary, PostprocessOptions, Term, postprocess
from pipeline.values import Outcome, Segment, SliceTranscript, Word

_GLOSSARY = Glossary((Term("勾股定理", (), "zh"), Term("DNA", (), "en")))


def _slice(
    index: int, language: str, start_ms: int, texts: list[str], outcome: Outcome = Outcome.TRANSCRIBED
) -> SliceTranscript:
    words = tuple(Word(text, start_ms + at * 200, start_ms + at * 200 + 200, 0.9) for at, text in enumerate(texts))
    segment = Segment(words[0].start_ms, words[-1].end_ms, "".join(texts), words, -0.2, 0.01, 1.5, 0.0)
    return SliceTranscript("m", index, language, 0.99, (segment,), outcome, "", 1, 100)


def _texts(*slices: SliceTranscript, options: PostprocessOptions | None = None) -> list[str]:
    return [item.text for item in postprocess(slices, _GLOSSARY, options or PostprocessOptions()).sentences]


def test_the_steps_follow_one_another() -> None:
    done = postprocess([_slice(0, "zh", 0, list("這是購股定理"))], _GLOSSARY, PostprocessOptions())
    assert [sentence.text for sentence in done.sentences] == ["这是勾股定理。"]
    assert [(change.before, change.after) for change in done.replacements] == [("购股定理", "勾股定理")]


def test_a_sentence_goes_on_over_a_slice_boundary_without_a_pause() -> None:
    assert _texts(_slice(0, "zh", 0, list("物体")), _slice(1, "zh", 420, list("运动"))) == ["物体运动。"]
    assert _texts(_slice(0, "zh", 0, list("物体")), _slice(1, "zh", 1_000, list("运动"))) == [
        "物体。",
        "运动。",
    ]


def test_a_sentence_ends_where_the_language_changes() -> None:
    slices = [
        _slice(0, "zh", 0, list("我们用")),
        _slice(1, "en", 650, ["the", " dna"]),
        _slice(2, "zh", 2_000, ["好"]),
    ]
    sentences = postprocess(slices, _GLOSSARY, PostprocessOptions()).sentences
    assert [(item.language, item.text) for item in sentences] == [
        ("zh", "我们用"),
        ("en", "The DNA."),
        ("zh", "好。"),
    ]


@pytest.mark.parametrize("outcome", [Outcome.FILTERED, Outcome.FAILED, Outcome.SILENCE])
def test_only_transcribed_slices_count(outcome: Outcome) -> None:
    assert _texts(_slice(0, "zh", 0, list("好")), _slice(1, "en", 5_000, ["Thanks."], outcome)) == ["好。"]


def test_each_step_can_be_switched_off() -> None:
    item = _slice(0, "zh", 0, list("這是購股定理"))
    assert _texts(item, options=PostprocessOptions(script="none", glossary=False, punctuation=False)) == [
        "這是購股定理"
    ]
    assert _texts(item, options=PostprocessOptions(glossary=False, homophones=False)) == ["这是购股定理。"]
    assert _texts(item, options=PostprocessOptions(punctuation=False)) == ["这是勾股定理"]


def test_numbers_and_fillers_follow_their_options_and_are_accounted_for() -> None:
    item = _slice(0, "zh", 0, [*"我我们有", "呃", *"十三厘米"])
    plain = PostprocessOptions(homophones=False, punctuation=False)
    assert _texts(item, options=replace(plain, numbers=False)) == ["我我们有呃十三厘米"]
    assert _texts(item, options=plain) == ["我我们有呃13厘米"]
    done = postprocess([item], _GLOSSARY, replace(plain, fillers="clean"))
    assert [sentence.text for sentence in done.sentences] == ["我们有13厘米"]
    assert [(one.start_ms, one.before, one.after, one.rule) for one in done.replacements] == [
        (0, "我", "", "repeat"),
        (800, "呃", "", "filler"),
        (1000, "十三", "13", "number"),
    ]


def test_unknown_fillers_are_refused() -> None:
    with pytest.raises(UsageError, match="fillers must be verbatim or clean"):
        PostprocessOptions(fillers="none")


def test_a_segment_without_word_times_is_kept_as_one_word() -> None:
    segment = Segment(0, 900, "大家好。", (), -0.2, 0.01, 1.5, 0.0)
    item = SliceTranscript("m", 0, "zh", 0.99, (segment,), Outcome.TRANSCRIBED, "", 1, 100)
    (sentence,) = postprocess([item], _GLOSSARY, PostprocessOptions()).sentences
    assert (sentence.text, sentence.start_ms, sentence.end_ms) == ("大家好。", 0, 900)


def test_no_slices_make_no_sentences() -> None:
    done = postprocess([], _GLOSSARY, PostprocessOptions())
    assert (done.sentences, done.replacements) == ((), ())


def test_the_fingerprint_follows_the_options_and_the_version(monkeypatch: pytest.MonkeyPatch) -> None:
    one = PostprocessOptions().fingerprint
    assert one == PostprocessOptions().fingerprint
    others = (
        PostprocessOptions("none"),
        PostprocessOptions(glossary=False),
        PostprocessOptions(punctuation=False),
        PostprocessOptions(numbers=False),
        PostprocessOptions(fillers="clean"),
    )
    assert len({one, *(options.fingerprint for options in others)}) == 6
    monkeypatch.setattr("pipeline.postprocess.VERSION", 99)
    assert PostprocessOptions().fingerprint != one


def test_an_unknown_script_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="t2x"):
        PostprocessOptions(script="t2x")
