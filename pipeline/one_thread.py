"""Small matrix products on the thread that asks for them.

OpenBLAS, which NumPy is linked to, gives products of a few hundred rows to a thread for each core. Those that have
nothing to do spin, and go on for a tenth of a second after the product. On two cores that other work kept busy the
network of ``mark_model`` so took up to eight times the processor time that it takes on one thread, with the same
result; an encoder right after the log-mel features took 325 ms, not 270.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import lru_cache

from threadpoolctl import ThreadpoolController


def one_thread() -> AbstractContextManager[object]:
    """While it is open, this process's OpenBLAS uses one thread; afterwards as many as before."""
    limited: AbstractContextManager[object] = _openblas().limit(limits=1)
    return limited


@lru_cache(maxsize=1)
def _openblas() -> ThreadpoolController:
    """Found once; with NumPy on another library it is empty and limits nothing."""
    return ThreadpoolController().select(internal_api="openblas")
