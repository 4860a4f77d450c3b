"""Each slice's text is judged after decoding: is it what was said, or did Whisper invent it?

faster-whisper's batched pipeline ignores Whisper's own thresholds, and those miss much of what Whisper invents.
Every rule is a plain function of the text, its measures and the speech spans that the detector heard.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from pipeline.values import Segment, Slice, Span, Word

_WIDE = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]|[\U00020000-\U0003ffff]")
"""Ideographs, kana and syllable blocks: one of them is a syllable or more, so fewer are spoken in a second."""


@dataclass(frozen=True, slots=True)
class JudgeRules:
    """The limits. Where a number is Whisper's own it says so; the others were set on the shared speech and noise."""

    min_avg_logprob: float = -1.0
    """Whisper's own."""
    max_compression_ratio: float = 2.4
    """Whisper's own, for zlib over UTF-8."""
    max_no_speech_probability: float = 0.6
    """Whisper's own; counts only where the text is improbable too."""
    doubtful_avg_logprob: float = -0.6
    """With a high no-speech probability, or a stock phrase, a text below this was invented."""
    max_repeats: int = 5
    """The same four words (or eight characters) more often than this is a loop."""
    max_wide_per_second: float = 12.0
    """Ideographs, kana and syllable blocks. The fastest lecturers reach 8."""
    max_letters_per_second: float = 30.0
    """All other letters and digits. The fastest lecturers reach 20, in a Chinese lecture's English sentences too."""
    min_word_probability: float = 0.6
    """Mean over the words of a slice. Real speech has 0.79 and more, meetings and dialects included."""
    retry_word_probability: float = 0.75
    """The same for a text that was found only after the first one was refused: it must convince."""
    counting_word_probability: float = 0.78
    """The same for a text that counts. People who count or spell reach 0.83 to 0.94; digits made of a voice that
    cannot be understood have 0.66 to 0.73, or loop."""
    max_untimed_share: float = 0.3
    """Share of words without duration. Real speech has up to 0.02, invented text 0.2 to 0.9."""
    short_speech_ms: int = 400
    """A doubtful text over less speech than this was invented."""
    min_word_share_in_speech: float = 0.5
    """Below this share of words inside speech spans the text does not belong to the sound."""
    speech_slack_ms: int = 400
    """How far from a speech span a word may lie and still belong to it."""
    max_unheard_speech_ms: int = 2_000
    """More speech than this between the beginnings of two words, and some was skipped. Complete texts have up to
    1.8 s; where a sentence was missing it was 2.1 to 10 s, often under one word that the alignment drew out."""

    def for_retries(self) -> JudgeRules:
        """The rules for a second and later decoding."""
        return replace(self, min_word_probability=self.retry_word_probability)


@dataclass(frozen=True, slots=True)
class Objection:
    """What a rule found. A fatal one filters the slice if no decoding does better; the others only ask for a retry."""

    rule: str
    is_fatal: bool = True
    is_final: bool = False
    """No other decoding can help: there was nothing to hear."""
    lost_ms: int = 0
    """Speech that is known to be missing from the text."""


STOCK_PHRASES = re.compile(
    r"字幕|訂閱|订阅|点赞|點贊|打赏|明镜|明鏡|點點欄目|点点栏目|amara|谢谢(大家)?(观看|收看)|謝謝(大家)?(觀看|收看)"
    r"|thank(s| you)( so much| very much)? for watching|subscribe|subtitles? by|captions? by"
    r"|^\W*(thank you|thanks|you|bye|okay|oh|so|谢谢|謝謝|嗯|啊|哦)\W*$",
    re.IGNORECASE,
)
"""What Whisper writes over silence and music: credits of the videos that it was trained on."""

_COUNTING = re.compile(r"(?:\b(?:\d{1,2}|[A-Z]\d?)[-–.,、 ]+){9}", re.ASCII)
"""What Whisper makes of speech that it cannot understand, and of people who count."""


def judge(segment: Segment, piece: Slice, prompt: str, rules: JudgeRules) -> tuple[Objection, ...]:
    """Every objection to ``segment`` as the text of ``piece``; empty where it stands.

    ``prompt`` is what the decoding was given as context; empty where it had none.
    """
    text = segment.text.strip()
    if not re.search(r"\w", text):
        return (Objection("no text", is_final=True),)
    found = {
        **_improbable(segment, piece, rules),
        "repetitive": segment.compression_ratio > rules.max_compression_ratio or _loops(text, rules.max_repeats),
        "counting": _counts(text) and _mean_probability(segment.words) < rules.counting_word_probability,
        "too fast": _least_ms(text, rules) > max(_speech_ms(piece), 500),
        "outside speech": _share_in_speech(segment.words, piece.speech, rules) < rules.min_word_share_in_speech,
        "untimed": _untimed_share(segment.words) > rules.max_untimed_share,
        "prompt echo": _echoes(text, prompt),
    }
    objections = [Objection(rule, is_final=rule == "no speech") for rule, is_so in found.items() if is_so]
    unheard_ms = _unheard_ms(segment.words, piece.speech)
    if unheard_ms > rules.max_unheard_speech_ms:
        objections.append(Objection("skipped speech", is_fatal=False, lost_ms=unheard_ms))
    return tuple(objections)


def _improbable(segment: Segment, piece: Slice, rules: JudgeRules) -> dict[str, bool]:
    doubtful = segment.avg_logprob < rules.doubtful_avg_logprob
    stock = bool(STOCK_PHRASES.search(segment.text.strip()))
    return {
        "improbable": segment.avg_logprob < rules.min_avg_logprob,
        "no speech": doubtful and segment.no_speech_probability > rules.max_no_speech_probability,
        "stock phrase": doubtful and stock,
        "too short": doubtful and _speech_ms(piece) < rules.short_speech_ms,
        "unsure": _mean_probability(segment.words) < rules.min_word_probability,
    }


def _speech_ms(piece: Slice) -> int:
    return sum(span.duration_ms for span in piece.speech)


def _mean_probability(words: tuple[Word, ...]) -> float:
    """1.0 where there are too few words to say: one rare word in a short answer is often improbable."""
    return sum(word.probability for word in words) / len(words) if len(words) >= 5 else 1.0


def _untimed_share(words: tuple[Word, ...]) -> float:
    """The share of words to which the alignment gave no time at all: it found no sound for them."""
    return sum(word.end_ms <= word.start_ms for word in words) / len(words) if len(words) >= 5 else 0.0


def _least_ms(text: str, rules: JudgeRules) -> float:
    """The least time in which the text can be spoken. Marks and spaces take none.

    >>> _least_ms("你好，world!", JudgeRules())
    333.3
    """
    spoken = len(re.findall(r"\w", text))
    wide = len(_WIDE.findall(text))
    return round(1000 * (wide / rules.max_wide_per_second + (spoken - wide) / rules.max_letters_per_second), 1)


def _counts(text: str) -> bool:
    """Whether ten digits and single letters stand in a row, spelt apart.

    >>> _counts("Kira 2-0-4-1-0-2-3-1-5-4-10"), _counts("1, 2 and 3, in 2024, on page 5.")
    (True, False)
    """
    return bool(_COUNTING.search(text))


def _loops(text: str, max_repeats: int) -> bool:
    """Whether one run of words (or of characters, where words are not spaced) comes again and again.

    >>> _loops("and then " * 12, 5), _loops("so we add one and then we add two and then three", 5)
    (True, False)
    >>> _loops("我们来看一下" * 8, 5)
    True
    """
    words = re.findall(r"\w+", text.lower())
    units, size = (words, 4) if len(words) * 5 > len(text) * 0.6 else (list("".join(words)), 8)
    runs = Counter(tuple(units[at : at + size]) for at in range(len(units) - size + 1))
    return bool(runs) and max(runs.values()) > max_repeats


def _echoes(text: str, prompt: str) -> bool:
    """Whether the text is only a piece of the prompt, said back.

    >>> _echoes("今天我们开始上课。", "大家好，今天我们开始上课。"), _echoes("好。", "大家好，今天我们开始上课。")
    (True, False)
    """
    said, given = ("".join(re.findall(r"\w", part.lower())) for part in (text, prompt))
    return len(said) >= 6 and said in given


def _share_in_speech(words: tuple[Word, ...], speech: tuple[Span, ...], rules: JudgeRules) -> float:
    if not words:
        return 1.0
    inside = sum(any(_touches(word, span, rules.speech_slack_ms) for span in speech) for word in words)
    return inside / len(words)


def _touches(word: Word, span: Span, slack_ms: int) -> bool:
    return word.start_ms < span.end_ms + slack_ms and word.end_ms > span.start_ms - slack_ms


def _unheard_ms(words: tuple[Word, ...], speech: tuple[Span, ...]) -> int:
    """The most speech between the beginnings of two words, before the first or after the last, in milliseconds.

    The ends of words say nothing: the alignment draws a word out over a sentence that is missing behind it.
    """
    edges = {edge for span in speech for edge in (span.start_ms, span.end_ms)}
    begun = sorted({min(edges, default=0), *(word.start_ms for word in words), max(edges, default=0)})
    heard_ms = _speech_until(speech, begun)
    return max((until - since for since, until in pairwise(heard_ms)), default=0)


def _speech_until(speech: tuple[Span, ...], times_ms: Sequence[int]) -> list[int]:
    """How much speech there is before each of the times, which rise; in one pass over spans and times.

    >>> _speech_until((Span(100, 200), Span(300, 400)), [0, 150, 250, 350, 500])
    [0, 50, 100, 150, 200]
    """
    changes = sorted([(span.start_ms, 1) for span in speech] + [(span.end_ms, -1) for span in speech])
    found, heard_ms, speaking, since_ms, at = [], 0, 0, 0, 0
    for time_ms in times_ms:
        while at < len(changes) and changes[at][0] <= time_ms:
            change_ms, step = changes[at]
            heard_ms += speaking * (change_ms - since_ms)
            speaking, since_ms, at = speaking + step, change_ms, at + 1
        found.append(heard_ms + speaking * (time_ms - since_ms))
    return found
