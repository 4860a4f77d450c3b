"""Beam search that never leaves the device: each step, with its choice of texts, is one CUDA graph.

The rules are those of ``beam_search``. The host starts steps, and looks only now and then whether slices are done;
when so many are that fewer rows would do, the others are brought together and go on in a smaller graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from pipeline.engines.beam_search import CANDIDATES
from pipeline.engines.mark_tokens import MarkTokens
from pipeline.engines.torch_decoder import Decoder, Ops
from pipeline.engines.torch_encoder import SoundMemory
from pipeline.engines.torch_ops import mark_chances
from pipeline.engines.torch_texts import Texts

Tensor = Any

BUCKETS = (1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256, 384, 512)
"""Numbers of slices that graphs are made for."""
_STEPS_UNSEEN = 8
"""Steps between two looks: a look costs about 30 us, and a slice that is done costs half of these steps."""
_EMPTY_SCORE = -1e30
"""Of an empty text: it is the best only where there is no other."""


@dataclass(frozen=True, slots=True)
class Written:
    """The best text of each slice, on the device; what lies after a text's end is of no meaning."""

    tokens: Tensor
    """``(slices, longest)``."""
    logprobs: Tensor
    marks: Tensor
    """``(slices, longest, 2)``; see ``Text.marks``."""
    lengths: Tensor
    """Tokens of each text, ``(slices,)``."""
    totals: Tensor
    """Sum over the tokens and the end."""
    is_cut: Tensor
    """True where the text has no end."""
    lines: Tensor
    """Which row wrote each place, ``(slices, places)``."""


class BeamSearch:
    """The search over one set of arrays; its graphs last as long as they do."""

    def __init__(
        self, decoder: Decoder, ops: Ops, texts: Texts, sound: SoundMemory, end: int, marks: MarkTokens
    ) -> None:
        self.texts = texts
        device = texts.lines.device
        self._marks = torch.tensor(marks.inside, device=device), torch.tensor(marks.ends, device=device)
        self._count = max(2 * texts.beam, CANDIDATES)
        self._decoder, self._ops, self._sound, self._end = decoder, ops, sound, end
        self._graphs: dict[int, Any] = {}
        self._pool = torch.cuda.graph_pool_handle() if texts.lines.device.type == "cuda" else None
        self.steps = 0
        """Steps of the last search."""

    def run(self, first: Tensor) -> Written:
        """The best texts; ``first (slices, vocabulary)`` are the logits after the prompts, which have been read."""
        slices = first.shape[0]
        tokens, logprobs = self._ops.best_tokens(first, self._decoder.hidden_first, self._count)
        beam = self.texts.beam
        self._choose(tokens.repeat_interleave(beam, 0), logprobs.repeat_interleave(beam, 0), slices)
        limit, bucket, self.steps = int(self.texts.limit), _bucket(slices, self.texts.capacity), 1
        while self.steps < limit:
            for _ in range(min(_STEPS_UNSEEN, limit - self.steps)):
                self._step(bucket)
                self.steps += 1
            open_slices = (~self.texts.done[:bucket]).nonzero().flatten()
            if not len(open_slices):
                break
            bucket = self._narrowed(open_slices, bucket)
        return self._written(slices)

    def _narrowed(self, open_slices: Tensor, bucket: int) -> int:
        """The bucket to go on in. Half as many rows save more than the move costs."""
        smaller = _bucket(len(open_slices), self.texts.capacity)
        if smaller * 2 > bucket:
            return bucket
        done = self.texts.done[:bucket].nonzero().flatten()
        self.texts.keep(torch.cat([open_slices, done])[:smaller])
        return smaller

    def _step(self, bucket: int) -> None:
        if bucket in self._graphs:
            self._graphs[bucket].replay()
            return
        self._step_now(bucket)
        if self.texts.lines.device.type == "cuda":
            # The step above was a real one and has compiled what there is to compile; capturing runs nothing.
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=self._pool):
                self._step_now(bucket)
            self._graphs[bucket] = graph

    def _step_now(self, bucket: int) -> None:
        logits = self._decoder.logits(self._decoder.step(self.texts, self._sound, bucket))
        tokens, logprobs = self._ops.best_tokens(logits, self._decoder.hidden, self._count)
        self._choose(tokens, logprobs, bucket)

    def _choose(self, tokens: Tensor, logprobs: Tensor, slices: int) -> None:
        """Go on with the best texts; ``tokens`` and ``logprobs`` are ``(rows, count)``, best first."""
        beam, texts = self.texts.beam, self.texts
        marks = mark_chances(tokens, logprobs, self._marks)
        tokens, logprobs = tokens[:, : 2 * beam], logprobs[:, : 2 * beam]
        scores = texts.totals[:slices, :, None] + logprobs.reshape(slices, beam, -1)
        totals, at = scores.flatten(1).topk(2 * beam)
        chosen = tokens.reshape(slices, -1).gather(1, at)
        logprob = logprobs.reshape(slices, -1).gather(1, at)
        parents = at // (2 * beam) + torch.arange(0, slices * beam, beam, device=at.device)[:, None]
        self._take_ends(totals, chosen, logprob, parents, marks)
        rank = torch.arange(2 * beam, device=at.device)
        others = torch.where(chosen == self._end, rank + 2 * beam, rank).sort(1).indices[:, :beam]
        totals, chosen, logprob, parents = (of.gather(1, others) for of in (totals, chosen, logprob, parents))
        rows, place = slices * beam, texts.position + 1
        texts.lines[:rows] = texts.lines[parents.flatten()]
        texts.lines[:rows].index_copy_(1, place, torch.arange(rows, device=at.device, dtype=torch.int32)[:, None])
        texts.totals[:slices] = totals
        texts.tokens[:rows] = chosen.flatten()
        texts.written[:, :rows].index_copy_(0, place, chosen.view(1, rows).int())
        texts.logprobs[:, :rows].index_copy_(0, place, logprob.view(1, rows))
        texts.marks[:, :rows].index_copy_(0, place, marks[parents.flatten()][None])
        texts.position.add_(1)
        texts.count.add_(1)

    def _take_ends(self, totals: Tensor, chosen: Tensor, logprob: Tensor, parents: Tensor, marks: Tensor) -> None:
        """Keep the best text that ends in this step, where it is better than those that ended before."""
        texts, slices, beam, best = self.texts, len(totals), self.texts.beam, self.texts.best
        is_end = chosen == self._end
        is_last = texts.count + 1 >= texts.limit
        ends = (is_end | is_last)[:, :beam] & ~texts.done[:slices, None]
        length = texts.count + ~is_end[:, :beam]
        score = torch.where(length > 0, totals[:, :beam] / length.clamp(min=1), _EMPTY_SCORE)
        score, at = torch.where(ends, score, -torch.inf).max(1, keepdim=True)
        slots = texts.slots[:slices]
        is_better = score[:, 0] > best.scores[slots]
        rows = parents.gather(1, at)[:, 0]
        new = (score, totals.gather(1, at), chosen.gather(1, at), logprob.gather(1, at), texts.count.expand(slices, 1))
        old = (best.scores, best.totals, best.last, best.last_logprobs, best.lengths)
        for into, value in zip(old, new, strict=True):
            into.index_copy_(0, slots, torch.where(is_better, value[:, 0], into[slots]))
        for into, value in ((best.lines, texts.lines[rows]), (best.last_marks, marks[rows])):
            into.index_copy_(0, slots, torch.where(is_better[:, None], value, into[slots]))
        texts.ended[:slices] += ends.sum(1, dtype=torch.int32)
        texts.done[:slices] |= (texts.ended[:slices] >= beam) | is_last
        texts.frames[:slices].masked_fill_(texts.done[:slices], 0)

    def _written(self, slices: int) -> Written:
        """Read the best texts together. Only here are lengths known on the host."""
        texts, best = self.texts, self.texts.best
        is_cut = best.last[:slices] != self._end
        lengths = best.lengths[:slices]
        longest, first = int(lengths.max()) + 1, texts.prompt_length
        lines = best.lines[:slices]
        rows = lines[:, first : first + longest].t().long()
        tokens = texts.written[first : first + longest].gather(1, rows).t().long()
        logprobs = texts.logprobs[first : first + longest].gather(1, rows).t()
        marks = texts.marks[first : first + longest].gather(1, rows[..., None].expand(-1, -1, 2)).transpose(0, 1)
        # A text that was cut ends in a token that no row has written.
        ends = lengths[:, None]
        tokens = tokens.scatter(1, ends, best.last[:slices, None])
        logprobs = logprobs.scatter(1, ends, best.last_logprobs[:slices, None])
        marks = marks.scatter(1, ends[..., None].expand(-1, -1, 2), best.last_marks[:slices, None])
        return Written(tokens, logprobs, marks, lengths + is_cut, best.totals[:slices], is_cut, lines)


def _bucket(slices: int, capacity: int) -> int:
    return min(capacity, next((size for size in BUCKETS if size >= slices), capacity))


def capacity_for(slices: int) -> int:
    """The size of the arrays for so many slices: that of the graph they run in."""
    return _bucket(slices, BUCKETS[-1])
