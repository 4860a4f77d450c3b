"""Tables out of what was handed over, what was stored and what it took. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.load.noting import Stored
from bench.load.producer import Handed, Job
from bench.machine import Machine
from bench.scoring import percentile

MIB = 1024 * 1024
PERCENTS = (50, 95, 99, 100)
LIVE = ("courses", "slices", "slices/s", "MiB/s", "p50 ms", "p95 ms", "p99 ms", "max ms", "behind", "lost")
FLAT = ("slices", "slices/s", "MiB/s", "rows/s", "sent MiB/s", "p99 ms", "lost")
AROUND = ("other programs, cores", "load average")
LEGEND = """\
Everything is the product's and real (Kafka, PostgreSQL with fsync, both consumers, FLAC decoding) but the engine,
**a stub that answers at once** with 60 words a slice. The audio is our demo lectures', encoded before the measurement.

- live: each course hands over a slice when its speech ends, every 26 s on the average (lognormal).
- flat out: one producer sends 16 slices, waits for their acknowledgement, and sends the next.
- ms: from the end of its speech (flat out: from being given to the sender) until the transaction with the slice's row
  is committed, as the assemble consumer sees it: the moment at which its step returns. One clock, one machine.
- behind: slices handed over and not yet stored when the last one was handed over. lost: those of which PostgreSQL has
  no row at the end. slices/s: over the whole time until the last was stored; rows: of the tables slice and
  slice_transcript. sent: while the producer worked.
- other programs: processor time of this machine that was used by anybody else, or taken by its host, meanwhile. Where
  they had much of it, slices/s and ms say little; the processor time for each slice still does.
- No media ends here: making cues of whole lectures is not in these numbers."""


@dataclass(frozen=True, slots=True)
class Around:
    """What else the machine did: cores used by other programs, and the load average (1 minute) before."""

    others_cores: float
    load: float


@dataclass(frozen=True, slots=True)
class Measured:
    """One measurement."""

    job: Job
    slices: int
    size_bytes: int
    sending_s: float
    """From the first slice due to the last acknowledged."""
    whole_s: float
    """From the first slice due to the last stored."""
    latencies_ms: dict[int, float]
    """By percentile."""
    behind: int
    lost: int
    rows: int
    cpu_s: dict[str, float]
    """Processor time by process."""
    around: Around

    @property
    def slices_per_s(self) -> float:
        return self.slices / self.whole_s


def measured(
    job: Job,
    handed: Sequence[Handed],
    stored: Sequence[Stored],
    rows: Mapping[str, int],
    cpu_s: Mapping[str, float],
    around: Around,
) -> Measured:
    """Put one run's notes together. ``handed`` must not be empty."""
    due_ms = {(one.media_id, one.slice_index): one.due_ms for one in handed}
    stored_ms = {(one.media_id, one.slice_index): one.stored_ms for one in stored}
    latencies_ms = [stored_ms[key] - due_ms[key] for key in due_ms.keys() & stored_ms.keys()]
    first_ms, last_ms = min(due_ms.values()), max(one.acknowledged_ms for one in handed)
    return Measured(
        job=job,
        slices=len(handed),
        size_bytes=sum(one.size_bytes for one in handed),
        sending_s=_seconds(first_ms, last_ms),
        whole_s=_seconds(first_ms, max(stored_ms.values(), default=last_ms)),
        latencies_ms={percent: percentile(latencies_ms, percent) for percent in PERCENTS},
        behind=sum(stored_ms.get(key, last_ms + 1) > last_ms for key in due_ms),
        lost=len(due_ms) - rows["slice_transcript"],
        rows=sum(rows.values()),
        cpu_s=dict(cpu_s),
        around=around,
    )


def _seconds(first_ms: int, last_ms: int) -> float:
    return max(1, last_ms - first_ms) / 1000


def markdown(results: Sequence[Measured], batch: int, delay_ms: int, machine: Machine, command: str) -> str:
    """The whole report."""
    live = [one for one in results if one.job.duration_ms]
    flat = [one for one in results if not one.job.duration_ms]
    parts = ["# The line over Kafka and PostgreSQL, without the engine"]
    if live:
        parts += ["## Live (stub engine)", _grid((*LIVE, *AROUND), [_live_row(one) for one in live])]
    if flat:
        parts += ["## Flat out (stub engine)", _grid((*FLAT, *AROUND), [_flat_row(one) for one in flat])]
    parts += ["## Processor ms for each slice (stub engine)", _cpu_table(results), LEGEND]
    return "\n\n".join([*parts, _facts(batch, delay_ms, machine, command)]) + "\n"


def _live_row(one: Measured) -> list[str]:
    latencies = [f"{one.latencies_ms[percent]:.0f}" for percent in PERCENTS]
    mib_per_s = one.size_bytes / MIB / one.sending_s
    counts = [str(one.job.courses), str(one.slices), f"{one.slices_per_s:.1f}", f"{mib_per_s:.1f}"]
    return [*counts, *latencies, str(one.behind), str(one.lost), *_around(one)]


def _flat_row(one: Measured) -> list[str]:
    mib = one.size_bytes / MIB
    rates = (one.slices_per_s, mib / one.whole_s, one.rows / one.whole_s, mib / one.sending_s)
    late = f"{one.latencies_ms[99]:.0f}"
    return [str(one.slices), *(f"{rate:.1f}" for rate in rates), late, str(one.lost), *_around(one)]


def _cpu_table(results: Sequence[Measured]) -> str:
    names = list(dict.fromkeys(name for one in results for name in one.cpu_s))
    return _grid(("run", *names, "all", "so slices/s a core"), [_cpu_row(one, names) for one in results])


def _cpu_row(one: Measured, names: Sequence[str]) -> list[str]:
    each_ms = [1000 * one.cpu_s.get(name, 0.0) / one.slices for name in names]
    run = f"{one.job.courses} courses live" if one.job.duration_ms else "flat out"
    all_ms = sum(each_ms)
    return [run, *(f"{ms:.1f}" for ms in each_ms), f"{all_ms:.1f}", f"{1000 / max(0.1, all_ms):.0f}"]


def _around(one: Measured) -> list[str]:
    return [f"{one.around.others_cores:.1f}", f"{one.around.load:.1f}"]


def _facts(batch: int, delay_ms: int, machine: Machine, command: str) -> str:
    return (
        f"{machine.date}, commit {machine.commit}; {machine.processor}, {machine.cores} cores; transcribe takes "
        f"batches of up to {batch} slices, the stub {delay_ms} ms for each; python {machine.versions['python']}; "
        f"`{command}`"
    )


def _grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
