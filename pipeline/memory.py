"""How much memory a device has and how much of it is free, a machine's or a GPU's; and giving back what is not used."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_UNLIMITED = 1 << 60
"""What older kernels write where a group has no limit is larger."""
_LOOK_TIMEOUT_S = 10
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
"""Parameters of mallopt(3): what may lie free at the end of the heap; from which size on a block is a mapping; how many
heaps the threads share."""
_LARGE_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Memory:
    """In bytes."""

    total_bytes: int
    free_bytes: int
    """What a process could still take; caches that the system gives back count."""

    @property
    def free_share(self) -> float:
        return self.free_bytes / self.total_bytes if self.total_bytes else 1.0


def memory_of(device: str) -> Memory | None:
    """``cpu`` or ``cuda`` (the first GPU that this process sees); None where it cannot be told."""
    return _gpu() if device == "cuda" else machine_memory()


def machine_memory(root: Path = Path("/")) -> Memory | None:
    """The machine's, or what the tightest of this process's control groups leaves of it."""
    try:
        lines = (root / "proc/meminfo").read_text().splitlines()
        table = {name: int(rest.split()[0]) * 1024 for name, _, rest in (line.partition(":") for line in lines)}
        whole = Memory(table["MemTotal"], table["MemAvailable"])
    except (OSError, KeyError, ValueError, IndexError):
        return None
    return min((whole, *_groups(root, whole)), key=lambda memory: memory.free_bytes)


def _groups(root: Path, whole: Memory) -> Iterator[Memory]:
    """What each group with a limit allows, from this process's own up to the first."""
    try:
        named = [line.split(":", 2) for line in (root / "proc/self/cgroup").read_text().splitlines()]
    except OSError:
        return
    top = root / "sys/fs/cgroup"
    for number, kinds, path in (one for one in named if len(one) == 3):
        if number == "0":
            yield from _limited(top, path, "memory.max", "memory.current", whole)
        elif "memory" in kinds.split(","):
            yield from _limited(top / "memory", path, "memory.limit_in_bytes", "memory.usage_in_bytes", whole)


def _limited(top: Path, path: str, limit: str, used: str, whole: Memory) -> Iterator[Memory]:
    own = top / path.lstrip("/")
    # Inside a container the path is that of the host, and the container's own group lies on top.
    for folder in (own, *own.parents) if own.is_relative_to(top) else (top,):
        if folder.is_relative_to(top) and (found := _group(folder, limit, used, whole)):
            yield found


def _group(folder: Path, limit: str, used: str, whole: Memory) -> Memory | None:
    try:
        total = int((folder / limit).read_text())
        taken = int((folder / used).read_text())
        lines = (folder / "memory.stat").read_text().splitlines()
        # Pages of files that the kernel drops first are counted as used.
        spare = {name: int(value) for name, value in (line.split() for line in lines)}.get("inactive_file", 0)
    except (OSError, ValueError):  # "max" is no number: no limit
        return None
    if total >= min(_UNLIMITED, whole.total_bytes):
        return None
    return Memory(total, max(0, min(whole.free_bytes, total - taken + spare)))


def _gpu() -> Memory | None:
    torch = sys.modules.get("torch")
    if torch is None:  # never imported only to look: it takes seconds, and the reference engine has none
        return _gpu_by_program()
    free, total = torch.cuda.mem_get_info()
    # What PyTorch holds without using it is free to the engine, which is PyTorch's.
    return Memory(total, free + torch.cuda.memory_reserved() - torch.cuda.memory_allocated())


def _gpu_by_program() -> Memory | None:
    command = ["nvidia-smi", "--query-gpu=memory.total,memory.free", "--format=csv,noheader,nounits"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=_LOOK_TIMEOUT_S, check=True).stdout
        # It shows all GPUs of the machine, whatever this process sees: only one can be told apart.
        (line,) = said.splitlines()
        total, free = (int(one) << 20 for one in line.split(","))
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return Memory(total, free)


def set_heap(parameter: int, value: int) -> None:
    """mallopt(3) of the GNU C library; where the library is another one, nothing is done."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(parameter, value)


def give_back_large_blocks() -> None:
    """Have the C library give every block of ``_LARGE_BYTES`` back when it is freed, from now on; and one heap for all.

    By itself it keeps blocks of up to 32 MiB in its heap, where an engine's arrays, each of another size, leave holes:
    the fused engine took 90 MiB more after four batches. Threads that start from now on would have heaps of their own,
    each with such holes: a file of 10 hours took 75 MiB more.
    """
    set_heap(M_MMAP_THRESHOLD, _LARGE_BYTES)
    set_heap(_M_ARENA_MAX, 1)


def trim_heap() -> None:
    """Have the C library give back what lies unused in its heap; where it is another one, nothing is done."""
    malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if malloc_trim is not None:
        malloc_trim(0)


def release_unused() -> None:
    """Give back what a dropped engine leaves: of the machine's memory, and what PyTorch holds of a GPU's."""
    gc.collect()
    trim_heap()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()
