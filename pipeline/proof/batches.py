"""Proof of batch sizes: a size is used only after its texts were those of the same slices one by one."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.errors import OutOfMemoryError, UsageError
from pipeline.proof.judgement import Verdict, difference, judge_batch
from pipeline.proof.speech import LANGUAGES, slices_for
from pipeline.proof.verdicts import Verdicts
from pipeline.transcription import Decoding, Engine, Failed, Request

SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
"""Batches are cut to these, so that each one's size is one that was proven."""
DISTINCT_SLICES = 14
"""That a batch is made of: the place of a slice changes with each turn, its text must not."""
PRECISION = "precision"
"""What the verdict on the precision itself is kept under."""


class BatchProof:
    """What is proven of one loaded engine. Sizes are proven when they are first asked for."""

    def __init__(self, engine: Engine, verdicts: Verdicts) -> None:
        self._engine, self._verdicts = engine, verdicts
        self._alone: dict[int, list[str]] = {}
        self._languages: Sequence[str] = ()

    @property
    def precision(self) -> Verdict | None:
        """None where doctor was never asked."""
        return self._verdicts.get(PRECISION)

    def of_size(self, size: int, beam_size: int, *, anew: bool = False) -> Verdict:
        """``anew``: whatever is known already.

        Raises OutOfMemoryError where the device has not the memory for so many, which is no verdict.
        """
        if size == 1:
            return Verdict(True, "alone")
        about = f"batch {size}, beam {beam_size}"
        known = None if anew else self._verdicts.get(about)
        if known is None:
            known = self._proven(size, beam_size)
            self._verdicts.put(about, known)
        return known

    def _proven(self, size: int, beam_size: int) -> Verdict:
        requests = self._slices(size)
        alone = self._alone_texts(min(size, DISTINCT_SLICES), beam_size)
        found = self._texts(requests, beam_size)
        return judge_batch(difference(found, [alone[at % len(alone)] for at in range(size)]))

    def can_work(self) -> bool:
        """Whether the device has the memory for any slice at all."""
        try:
            self._texts(self._slices(1), 1)
        except OutOfMemoryError:
            return False
        return True

    def texts_alone(self, count: int, beam_size: int) -> list[str]:
        """The texts of the first ``count`` slices, one by one."""
        return self._alone_texts(count, beam_size)[:count]

    def _alone_texts(self, count: int, beam_size: int) -> list[str]:
        known = self._alone.setdefault(beam_size, [])
        for request in self._slices(count)[len(known) :]:
            known += self._texts([request], beam_size)
        return known[:count]

    def _texts(self, requests: Sequence[Request], beam_size: int) -> list[str]:
        found = self._engine.transcribe(requests, Decoding(beam_size=beam_size))
        return ["" if isinstance(one, Failed) else one.segment.text for one in found]

    def _slices(self, size: int) -> list[Request]:
        distinct = slices_for(min(size, DISTINCT_SLICES), self.languages)
        return [distinct[at % len(distinct)] for at in range(size)]

    @property
    def languages(self) -> Sequence[str]:
        """Those of the speech that the model speaks."""
        if not self._languages:
            self._languages = LANGUAGES if self._speaks_both() else ("en",)
        return self._languages

    def _speaks_both(self) -> bool:
        try:
            self._texts(slices_for(1), 1)
        except UsageError:
            return False
        return True
