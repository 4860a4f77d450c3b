"""The C library's heap, told that this process lives on messages of half a megabyte."""

from __future__ import annotations

from pipeline.memory import M_MMAP_THRESHOLD, M_TRIM_THRESHOLD, set_heap

KEPT_BYTES = 64 * 1024 * 1024
"""Of what was freed: some answers of a broker (``FETCH_BYTES``), and a batch of decoded slices."""
_LARGEST_KEPT_BYTES = 32 * 1024 * 1024
"""The most that the library takes."""


def keep_freed_memory() -> None:
    """Keep up to ``KEPT_BYTES`` for the next message instead of giving it back to the system and asking again.

    Asked for page by page, it was half of what reading slices from a broker cost: 1.0 of 1.8 ms for each slice of
    430 kB (kafka-python copies it eight times). Where the C library is another one, nothing is done.
    """
    # Either of them ends the library's own guessing, which would find the second but not the first.
    set_heap(M_MMAP_THRESHOLD, _LARGEST_KEPT_BYTES)
    set_heap(M_TRIM_THRESHOLD, KEPT_BYTES)
