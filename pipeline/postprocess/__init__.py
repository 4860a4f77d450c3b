"""From slice transcripts to sentences: one script, the course's terms, punctuation, numbers, sentences.

The order is fixed, one file a step, and each step but the last can be switched off:

1. ``script``       one working form of characters, digits, marks and spaces (Chinese)
2. ``fillers``      hesitations and stutters dropped, where the options say ``clean``
3. ``glossary``     the terms of the course written right, every change recorded
4. ``homophones``   words of the dictionary that were heard as other characters of their sound (Chinese)
5. ``punctuation``  a mark where the speaker pauses and Whisper set none
6. ``numbers``      spoken numbers in digits, where a reader wants them
7. ``rendering``    the script of the course, and the words of its region (Chinese)
8. ``sentences``    the words regrouped

Every step is a pure function over the words of one language. A word's text may change, its time does not; words that
become one, as those of a number do, have the start of the first and the end of the last.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from pipeline.errors import UsageError
from pipeline.postprocess.fillers import STYLES, drop_fillers
from pipeline.postprocess.glossary import correct_terms
from pipeline.postprocess.homophones import correct_homophones
from pipeline.postprocess.numbers import inside_numbers, write_numbers
from pipeline.postprocess.prompt import prompt_sentence
from pipeline.postprocess.punctuation import punctuate
from pipeline.postprocess.rendering import folded, write_replacement, write_script
from pipeline.postprocess.runs import Run, language_runs
from pipeline.postprocess.script import SCRIPTS, fold_script
from pipeline.postprocess.sentences import split_sentences
from pipeline.postprocess.term_spans import spotter
from pipeline.postprocess.terms import Glossary, Term
from pipeline.values import Replacement, Sentence, SliceTranscript

__all__ = ["Glossary", "PostprocessOptions", "Postprocessed", "Term", "postprocess", "prompt_sentence"]

VERSION = 5
"""Raised with every change of a rule or a table here, so that stored transcripts can tell which rules made
them.
"""


@dataclass(frozen=True, slots=True)
class PostprocessOptions:
    """Which steps run. ``script`` is one of ``script.SCRIPTS``, ``fillers`` one of ``fillers.STYLES``; ``none`` and
    ``verbatim`` switch their step off.
    """

    script: str = "t2s"
    glossary: bool = True
    homophones: bool = True
    punctuation: bool = True
    numbers: bool = True
    fillers: str = "verbatim"

    def __post_init__(self) -> None:
        if self.script not in SCRIPTS:
            raise UsageError(f"there is no script {self.script!r}; choose one of {', '.join(SCRIPTS)}")
        if self.fillers not in STYLES:
            raise UsageError(f"fillers must be {' or '.join(STYLES)}, not {self.fillers!r}")

    @property
    def fingerprint(self) -> str:
        """16 hex digits that change with the options and with ``VERSION``; the glossary has its own."""
        document = json.dumps({"version": VERSION, **asdict(self)}, sort_keys=True)
        return hashlib.sha256(document.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Postprocessed:
    """The finished sentences in order, and what was changed in them, by time."""

    sentences: tuple[Sentence, ...]
    replacements: tuple[Replacement, ...]


def postprocess(slices: Sequence[SliceTranscript], glossary: Glossary, options: PostprocessOptions) -> Postprocessed:
    """The sentences of one media. ``slices`` are in media order with their words on the media clock.

    Only transcribed slices count. A sentence has one language and ends where the language changes.
    """
    parts = [_finish_run(run, glossary, options) for run in language_runs(slices)]
    return Postprocessed(
        sentences=tuple(sentence for part in parts for sentence in part.sentences),
        replacements=tuple(replacement for part in parts for replacement in part.replacements),
    )


def _finish_run(run: Run, glossary: Glossary, options: PostprocessOptions) -> Postprocessed:
    language = run.language
    is_folded = language == "zh" and options.script != "none"
    words = fold_script(run.words, language) if is_folded else run.words
    working = folded(glossary) if is_folded else glossary
    terms = spotter(one.term for one in working.terms)
    spoken: tuple[Replacement, ...] = ()
    written: tuple[Replacement, ...] = ()
    if options.fillers == "clean":
        words, spoken = drop_fillers(words, language, terms)
    corrected = correct_terms(words, language, working if options.glossary else Glossary.empty())
    words = corrected.words
    sounded: tuple[Replacement, ...] = ()
    if options.homophones and is_folded:
        words, sounded = correct_homophones(words, corrected.inside | {index + 1 for index in corrected.inside})
    if options.punctuation:
        inside = corrected.inside | inside_numbers(words, language)
        words = punctuate(words, language, inside=inside, next_start_ms=run.next_start_ms)
    if options.numbers:
        words, written = write_numbers(words, language, terms)
    words = write_script(words, language, options.script, glossary)
    replacements = sorted((*spoken, *corrected.replacements, *sounded, *written), key=lambda one: one.start_ms)
    return Postprocessed(
        split_sentences(words, language),
        tuple(write_replacement(one, language, options.script, glossary) for one in replacements),
    )
