"""Terms of languages with spaces: spelling, aliases, nearly the same letters, the same sound."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.postprocess.glossary import correct_terms
from pipeline.postprocess.terms import Corrected, Glossary, Term
from pipeline.values import Word

_COURSE = Glossary(
    (
        Term("eigenvalue", ("I can value",), "en"),
        Term("Gram-Schmidt process", (), "en"),
        Term("Hermitian matrix", (), "en"),
        Term("linear algebra", (), "en"),
        Term("differential", (), "en"),
        Term("DNA", ("D and A",), "en"),
        Term("Gauss", (), "en"),
        Term("NumPy", ("num pie",), ""),
    )
)


def _correct(text: str, glossary: Glossary = _COURSE, pause_ms: int = 0) -> Corrected:
    step_ms = 300 + pause_ms
    words = [Word(" " + word, at * step_ms, at * step_ms + 300, 0.9) for at, word in enumerate(text.split())]
    return correct_terms(words, "en", glossary)


def _text(corrected: Corrected) -> str:
    return "".join(word.text for word in corrected.words).strip()


@pytest.mark.parametrize(
    ("heard", "written", "rule"),
    [
        ("the dna strand", "the DNA strand", "case"),
        ("by gauss's law,", "by Gauss's law,", "case"),
        ('a "hermitian Matrix."', 'a "Hermitian matrix."', "case"),
        ("each I can value, then", "each eigenvalue, then", "alias"),
        ("a D and A test", "a DNA test", "alias"),
        ("import num pie now", "import NumPy now", "alias"),
        ("the gram schmidt process.", "the Gram-Schmidt process.", "fuzzy"),
        ("a hermitean matrix", "a Hermitian matrix", "fuzzy"),
        ("the eigen value is", "the eigenvalue is", "fuzzy"),
        ("an eigenvallue is", "an eigenvalue is", "fuzzy"),
    ],
)
def test_a_term_is_written_right(heard: str, written: str, rule: str) -> None:
    corrected = _correct(heard)
    assert _text(corrected) == written
    assert [change.rule for change in corrected.replacements] == [rule]


@pytest.mark.parametrize(
    "text",
    [
        "Linear algebra is fun",
        "Eigenvalue problems",
        "two eigenvalues here",
        "a differentiable map",
        "many linear algebras",
        "linear, algebra",
        "the gaussian case",
    ],
)
def test_words_that_are_right_or_only_related_stay(text: str) -> None:
    corrected = _correct(text)
    assert (_text(corrected), corrected.replacements) == (text, ())


def test_a_name_that_is_an_everyday_word_changes_no_other_use_of_it() -> None:
    languages = Glossary((Term("Go", (), "en"), Term("Python", (), "en")))
    assert _text(_correct("we go from python to Go", languages)) == "we go from Python to Go"


def test_a_term_is_not_heard_across_a_long_pause() -> None:
    assert not _correct("hermitean matrix", pause_ms=500).replacements


def test_words_are_retimed_by_letters_where_their_number_changes() -> None:
    corrected = _correct("the gram schmidt process now")
    assert [(word.text, word.start_ms, word.end_ms) for word in corrected.words] == [
        (" the", 0, 300),
        (" Gram-Schmidt", 300, 868),
        (" process", 868, 1_200),
        (" now", 1_200, 1_500),
    ]
    assert corrected.inside == frozenset({1})


def test_words_keep_their_times_where_their_number_stays() -> None:
    corrected = _correct("a hermitean matrix", pause_ms=100)
    assert [(word.start_ms, word.end_ms) for word in corrected.words] == [(0, 300), (400, 700), (800, 1_100)]


def test_an_empty_glossary_changes_nothing() -> None:
    words = [Word(" dna", 0, 100, 0.9)]
    assert correct_terms(words, "en", Glossary.empty()) == Corrected(tuple(words))


_MATHEMATICS = Glossary(
    tuple(
        Term(name, (), "en")
        for name in (
            "eigenvector",
            "Hermitian matrix",
            "Cauchy sequence",
            "Fourier transform",
            "perceptron",
            "hyperparameter",
            "basis",
            "covariance",
            "homeomorphism",
            "transformer",
            "overfitting",
        )
    )
)


@pytest.mark.parametrize(
    ("heard", "written"),
    [
        ("the igen vector of", "the eigenvector of"),
        ("a hermission matrix here", "a Hermitian matrix here"),
        ("every coshy sequence converges", "every Cauchy sequence converges"),
        ("a per septron learns", "a perceptron learns"),
    ],
)
def test_what_sounds_like_a_term_and_is_no_word_is_written_right(heard: str, written: str) -> None:
    corrected = _correct(heard, _MATHEMATICS)
    assert _text(corrected) == written
    (change,) = corrected.replacements
    assert change.rule == "sound"
    assert 0.84 <= change.score < 1


@pytest.mark.parametrize(
    "text",
    [
        "the bases of a space",
        "the bias is small",
        "eigenvectors of a matrix",
        "hyperparameters are set by hand",
        "a covariant vector",
        "a homomorphism of rings",
        "they overfit using little data",
        "transform RNN layers",
    ],
)
def test_words_and_other_forms_that_sound_like_a_term_stay(text: str) -> None:
    assert _correct(text, _MATHEMATICS).replacements == ()


@given(
    st.lists(
        st.sampled_from(["igen", "vector", "hermission", "matrix", "eigenvector", "of", "the", "basis"]), max_size=8
    )
)
def test_correcting_english_twice_is_correcting_once(words: list[str]) -> None:
    once = _correct(" ".join(words), _MATHEMATICS)
    assert correct_terms(once.words, "en", _MATHEMATICS).replacements == ()
