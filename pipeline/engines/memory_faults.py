"""Telling a lack of memory, and a device that is lost, from other failures of the libraries that compute.

PyTorch has a class of its own for it. CTranslate2 and OpenVINO raise RuntimeError with whatever the allocator said;
numpy and Python raise MemoryError.
"""

from __future__ import annotations

from pipeline.errors import DeviceLostError, OutOfMemoryError, RetriableError

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
_LOST = (
    "cudaerrorinvaliddevice",  # CTranslate2 4.8.5, whatever it is asked for after it ran out of memory
    "invalid device ordinal",
    "unspecified launch failure",
    "illegal memory access",
    "device-side assert",
    "uncorrectable ecc error",
)
"""After these CUDA does nothing more in the process."""


def is_device_lost(error: BaseException) -> bool:
    """Whether the device is of no use to this process any more.

    >>> is_device_lost(RuntimeError("parallel_for failed: cudaErrorInvalidDevice: invalid device ordinal"))
    True
    """
    said = str(error).lower()
    return any(words in said for words in _LOST)


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
    if is_device_lost(error):
        kind = DeviceLostError
    return kind(f"the engine failed on a batch of {slices} slices: {error}")
