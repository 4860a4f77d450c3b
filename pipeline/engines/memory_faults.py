"""Telling a lack of memory from other failures of the libraries that compute.

PyTorch has a class of its own for it. CTranslate2 and OpenVINO raise RuntimeError with whatever the allocator said;
numpy and Python raise MemoryError.
"""

from __future__ import annotations

from pipeline.errors import OutOfMemoryError, RetriableError

_NAMES = frozenset({"OutOfMemoryError"})
"""Of PyTorch's class, which is not imported to be recognised."""
_WORDS = (
    "out of memory",  # CTranslate2 on CUDA, PyTorch of older versions
    "bad_alloc",  # the C++ runtime, through CTranslate2 and OpenVINO
    "bad allocation",
    "alloc_failed",  # CUBLAS_STATUS_ALLOC_FAILED, CUDNN_STATUS_ALLOC_FAILED
    "failed to allocate",
    "cannot allocate",
    "could not allocate",
    "unable to allocate",
    "not enough memory",
)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether less at once may do.

    >>> is_out_of_memory(RuntimeError("CUDA failed with error out of memory"))
    True
    >>> is_out_of_memory(RuntimeError("CUDA failed with error no kernel image is available"))
    False
    """
    named = any(kind.__name__ in _NAMES for kind in type(error).__mro__)
    said = str(error).lower()
    return named or isinstance(error, MemoryError) or any(words in said for words in _WORDS)


def failure_of(error: Exception, slices: int) -> RetriableError:
    """What a library raised over a batch of ``slices``, as an error of this project."""
    kind = OutOfMemoryError if is_out_of_memory(error) else RetriableError
    return kind(f"the engine failed on a batch of {slices} slices: {error}")
