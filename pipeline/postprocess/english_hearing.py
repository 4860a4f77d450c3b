"""English words that sound like a term and are spelled otherwise: "Coshy sequence" for "Cauchy sequence".

Sound is compared by Metaphone (Philips 1990), spelling by edits. Words of the dictionary are taken for a term only
where they sound exactly alike and are much rarer than it; strings that are no words, where both are near.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from jellyfish import metaphone
from rapidfuzz import fuzz

from pipeline.postprocess.english_lexicon import EnglishLexicon

MIN_ALIKE = 80
"""Of 100, in sound and in letters each."""
MIN_ALIKE_TOGETHER = 84
"""Their mean: covariant and covariance have 82, hermission and Hermitian 92."""
MIN_LETTERS, MIN_SOUNDS = 5, 3
MIN_GAIN_OF_WORDS = 3.5
"""Natural logarithm: furrier transform and Fourier transform have 3.9, basis and bases less than nothing."""
MIN_UNKNOWN = 1 / 3
"""Of the letters, in words of no dictionary: RNN behind transform does not make it transformer."""
_VOWELS = "AEIOU"


@dataclass(frozen=True, slots=True)
class SoundEntry:
    """A term, its words folded, its letters and its sound."""

    term: str
    words: tuple[str, ...]
    letters: str
    sound: str


@dataclass(frozen=True, slots=True)
class SoundIndex:
    """``exact`` by the whole sound, ``near`` by its first consonant and its length."""

    exact: Mapping[str, Sequence[SoundEntry]] = field(repr=False)
    near: Mapping[tuple[str, int], Sequence[SoundEntry]] = field(repr=False)


def sound_index(terms: Sequence[tuple[str, Sequence[str]]]) -> SoundIndex:
    """The index of these terms, each with its words folded."""
    exact: defaultdict[str, list[SoundEntry]] = defaultdict(list)
    near: defaultdict[tuple[str, int], list[SoundEntry]] = defaultdict(list)
    for term, words in terms:
        letters = "".join(words)
        sound = metaphone(letters) if letters.isascii() else ""
        if len(letters) >= MIN_LETTERS and len(sound) >= MIN_SOUNDS:
            entry = SoundEntry(term, tuple(words), letters, sound)
            exact[sound].append(entry)
            for size in range(len(sound) * 2 // 3, len(sound) * 3 // 2 + 1):
                near[_first(sound), size].append(entry)
    return SoundIndex(exact, near)


def heard_as(words: Sequence[str], index: SoundIndex, lexicon: EnglishLexicon) -> tuple[str, float] | None:
    """The term that these folded words are misheard for and how alike they are, 0 to 100; None for none or several."""
    letters = "".join(words)
    if len(letters) < MIN_LETTERS or not letters.isascii():
        return None
    sound = metaphone(letters)
    found = sorted(_alike(words, letters, sound, index, lexicon), reverse=True)
    if not found or (len(found) > 1 and found[0][0] == found[1][0]):
        return None
    return found[0][1], found[0][0]


def _alike(
    words: Sequence[str], letters: str, sound: str, index: SoundIndex, lexicon: EnglishLexicon
) -> Iterator[tuple[float, str]]:
    unknown = sum(len(word) for word in words if not lexicon.is_word(word))
    if 0 < unknown < MIN_UNKNOWN * len(letters):
        return
    are_words = not unknown
    for entry in index.exact.get(sound, ()) if are_words else index.near.get((_first(sound), len(sound)), ()):
        if _is_another_word(words, letters, entry) or (are_words and len(words) != len(entry.words)):
            continue
        in_letters, in_sound = fuzz.ratio(letters, entry.letters), fuzz.ratio(sound, entry.sound)
        together = (in_letters + in_sound) / 2
        if min(in_letters, in_sound) < MIN_ALIKE or together < MIN_ALIKE_TOGETHER:
            continue
        gain = lexicon.log_probability(entry.words) - lexicon.log_probability(words)
        if gain >= (MIN_GAIN_OF_WORDS if are_words else 0):
            yield together, entry.term


def _is_another_word(words: Sequence[str], letters: str, entry: SoundEntry) -> bool:
    """Whether the term, or most of it, stands there with more behind it: eigenvectors of, overfit using."""
    is_stem = len(words) > len(entry.words) and len(words[0]) >= MIN_LETTERS and entry.letters.startswith(words[0])
    return letters.startswith(entry.letters) or letters.endswith(entry.letters) or is_stem


def _first(sound: str) -> str:
    """The first consonant: a vowel stands only at the beginning, and is often another one."""
    return sound.lstrip(_VOWELS)[:1]
