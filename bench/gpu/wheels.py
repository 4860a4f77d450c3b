"""The packages, with their versions, that bench.engine and bench.stream need on a GPU machine and that it lacks."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.metadata import packages_distributions, version
from pathlib import Path

THERE = {
    *("huggingface-hub", "markupsafe", "numpy", "onnxruntime", "packaging", "prometheus-client", "protobuf", "psutil"),
    *("pygments", "pyyaml", "rich", "setuptools", "tokenizers", "torch", "tqdm", "transformers", "triton"),
    "typing-extensions",
}
"""What the machine has."""
_IMPORTED = ("bench.engine", "bench.stream", "bench.scoring", "faster_whisper", "opencc", "rapidfuzz")
_LATER = ("platformdirs",)
"""Packages that the others import when they work."""


def main() -> None:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    for name in _IMPORTED:
        import_module(name)
    owners = packages_distributions()
    tops = {name.partition(".")[0] for name in sys.modules}
    names = {owner.lower().replace("_", "-") for top in tops for owner in owners.get(top, ())} | set(_LATER)
    for name in sorted(names - THERE - {"lecturemill"}):
        print(f"{name}=={version(name)}")


if __name__ == "__main__":
    main()
