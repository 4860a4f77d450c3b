"""Chinese terms written right, in place: each word keeps its time, only its characters change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pipeline.postprocess.chinese_claims import Hit
from pipeline.postprocess.chinese_hits import find_hits
from pipeline.postprocess.chinese_index import chinese_index
from pipeline.postprocess.stretches import Place, Stretch, stretches
from pipeline.postprocess.terms import Corrected, Glossary
from pipeline.values import Replacement, Word


def correct_chinese(words: Sequence[Word], glossary: Glossary) -> Corrected:
    """The words of a Chinese run with the terms of ``glossary`` written right."""
    index = chinese_index(glossary, "zh")
    found = find_hits(list(stretches(words)), index)
    found.sort(key=lambda pair: pair[0].places[pair[1].start])
    grid = [list(word.text) for word in words]
    replacements = []
    for stretch, hit in found:
        if hit.rule:
            replacements.append(_replacement(words, stretch, hit))
            _write(grid, stretch, hit)
    return _finished(words, ["".join(chars) for chars in grid], [_word_range(*pair) for pair in found], replacements)


def _word_range(stretch: Stretch, hit: Hit) -> range:
    return range(stretch.places[hit.start][0], stretch.places[hit.end - 1][0] + 1)


def _replacement(words: Sequence[Word], stretch: Stretch, hit: Hit) -> Replacement:
    first, last = stretch.places[hit.start], stretch.places[hit.end - 1]
    before = _text_between(words, first, last)
    after = _letters_in_place(hit, before) if hit.rule == "case" else hit.term
    return Replacement(words[first[0]].start_ms, words[last[0]].end_ms, before, after, hit.rule, hit.score)


def _text_between(words: Sequence[Word], first: Place, last: Place) -> str:
    if first[0] == last[0]:
        return words[first[0]].text[first[1] : last[1] + 1]
    middle = "".join(word.text for word in words[first[0] + 1 : last[0]])
    return words[first[0]].text[first[1] :] + middle + words[last[0]].text[: last[1] + 1]


def _letters_in_place(hit: Hit, before: str) -> str:
    """What stood there with the term's letters: the spaces between them stay as they were."""
    letters = iter(_shares(hit))
    return "".join(next(letters) if char.isalnum() else char for char in before)


def _write(grid: list[list[str]], stretch: Stretch, hit: Hit) -> None:
    for at, letters in zip(range(hit.start, hit.end), _shares(hit), strict=True):
        word, char = stretch.places[at]
        grid[word][char] = letters
    if hit.rule != "case":
        for row in stretch.breaks[hit.start + 1 : hit.end]:
            for word, char in row:
                grid[word][char] = ""


def _shares(hit: Hit) -> list[str]:
    """The term's letters, shared out in order among the characters that stood there."""
    letters = [char for char in hit.term if char.isalnum()] if hit.rule == "case" else list(hit.term)
    size = hit.end - hit.start
    shares = [""] * size
    for position, letter in enumerate(letters):
        shares[position * size // len(letters)] += letter
    return shares


def _finished(
    words: Sequence[Word], texts: Sequence[str], ranges: Sequence[range], replacements: Sequence[Replacement]
) -> Corrected:
    """Words that lost all their characters leave their time, and what was heard after them, to the word before."""
    kept = [index for index, text in enumerate(texts) if text.strip() or not words[index].text.strip()]
    position = {index: at for at, index in enumerate(kept)}
    lasts = {index: index for index in kept}
    for span in ranges:
        lasts[max(index for index in span if index in position)] = span[-1]
    corrected = tuple(_changed(words[index], texts[index], words[lasts[index]]) for index in kept)
    runs = [[position[index] for index in span if index in position] for span in ranges]
    return Corrected(corrected, tuple(replacements), frozenset(index for run in runs for index in run[:-1]))


def _changed(word: Word, text: str, last: Word) -> Word:
    if text == word.text and last is word:
        return word
    return replace(word, text=text, end_ms=last.end_ms, ending=last.ending)
