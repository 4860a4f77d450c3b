"""The C library's heap, told that this process lives on messages of half a megabyte."""

from __future__ import annotations

import ctypes

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""mallopt(3), of the GNU C library."""
KEPT_BYTES = 64 * 1024 * 1024
"""Of what was freed: some answers of a broker (``FETCH_BYTES``), and a batch of decoded slices."""
_LARGEST_KEPT_BYTES = 32 * 1024 * 1024
"""The most that the library takes."""


def keep_freed_memory() -> None:
    """Keep up to ``KEPT_BYTES`` for the next message instead of giving it back to the system and asking again.

    Asked for page by page, it was half of what reading slices from a broker cost: 1.0 of 1.8 ms for each slice of
    430 kB (kafka-python copies it eight times). Where the C library is another one, nothing is done.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        # Either of them ends the library's own guessing, which would find the second but not the first.
        mallopt(_M_MMAP_THRESHOLD, _LARGEST_KEPT_BYTES)
        mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES)
