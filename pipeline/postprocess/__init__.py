"""From slice transcripts to sentences: one script, the course's terms, punctuation, sentences.

The order is fixed, one file a step, and each step but the last can be switched off:

1. ``script``       one form of characters, digits, marks and spaces (Chinese)
2. ``glossary``     the terms of the course written right, every change recorded
3. ``punctuation``  a mark where the speaker pauses and Whisper set none
4. ``sentences``    the words regrouped

Every step is a pure function over the words of one language; a word's text may change, its time does not.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from pipeline.errors import UsageError
from pipeline.postprocess.glossary import correct_terms
from pipeline.postprocess.prompt import prompt_sentence
from pipeline.postprocess.punctuation import punctuate
from pipeline.postprocess.runs import Run, language_runs
from pipeline.postprocess.script import SCRIPTS, fold_script
from pipeline.postprocess.sentences import split_sentences
from pipeline.postprocess.terms import Glossary, Term
from pipeline.values import Replacement, Sentence, SliceTranscript

__all__ = ["Glossary", "PostprocessOptions", "Postprocessed", "Term", "postprocess", "prompt_sentence"]

VERSION = 1
"""Raised with every change of a rule or a table here, so that stored transcripts can tell which rules made
them.
"""


@dataclass(frozen=True, slots=True)
class PostprocessOptions:
    """Which steps run. ``script`` is one of ``script.SCRIPTS``; ``none`` switches that step off."""

    script: str = "t2s"
    glossary: bool = True
    punctuation: bool = True

    def __post_init__(self) -> None:
        if self.script not in SCRIPTS:
            raise UsageError(f"there is no script {self.script!r}; choose one of {', '.join(SCRIPTS)}")

    @property
    def fingerprint(self) -> str:
        """16 hex digits that change with the options and with ``VERSION``; the glossary has its own."""
        document = json.dumps({"version": VERSION, **asdict(self)}, sort_keys=True)
        return hashlib.sha256(document.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Postprocessed:
    """The finished sentences in order, and what the glossary changed in them."""

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
    words = fold_script(run.words, run.language, options.script)
    corrected = correct_terms(words, run.language, glossary if options.glossary else Glossary.empty())
    words = corrected.words
    if options.punctuation:
        words = punctuate(words, run.language, inside=corrected.inside, next_start_ms=run.next_start_ms)
    return Postprocessed(split_sentences(words, run.language), corrected.replacements)
