"""A program as on a lesser processor: ``python -m bench.masked avx2 -m bench.engine --rounds 1``.

Libraries ask the processor what it can by the instruction CPUID, and choose their code by the answer; the switches that
some of them have do not reach all of their code. So, in a copy of the environment, each CPUID is replaced by a trap,
whose handler (``masked.c``) takes bits out of the answer. /proc/cpuinfo lacks the same flags. Clock, caches and memory
stay those of the processor at hand. It needs gcc and objdump.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

EAX, EBX, ECX, EDX = range(4)
_CPUID, _TRAP = b"\x0f\xa2", b"\xcc\x90"
_FOUND = re.compile(r"\s*([0-9a-f]+):\s+cpuid\b")
LIBRARIES = ("openvino/libs", "ctranslate2.libs", "onnxruntime/capi", "numpy.libs", "numpy/_core")
"""Where the engines' computing lies, in an environment."""


@dataclass(frozen=True, slots=True)
class Mask:
    """What a processor lacks: flags as Linux names them, and their bits, each ``(leaf, subleaf, register, bits)``."""

    flags: re.Pattern[str]
    bits: tuple[tuple[int, int, int, int], ...]


_AMX_AND_HALVES = ((7, 0, EDX, 0x03C0_0000), (7, 1, EAX, 0x0020_0020))
"""AMX-BF16, AVX512-FP16, AMX-TILE, AMX-INT8; AVX512-BF16, AMX-FP16 (Intel's manual, vol. 2A, CPUID)."""
MASKS = {
    "avx512": Mask(re.compile(r"amx_\w+|avx512_bf16|avx512_fp16"), _AMX_AND_HALVES),
    "avx2": Mask(
        re.compile(r"amx_\w+|avx512\w*|avx_vnni"),
        ((7, 0, EBX, 0xDC23_0000), (7, 0, ECX, 0x5842), (7, 0, EDX, 0x0000_010C), (7, 1, EAX, 0x0000_0010),
         (0xD, 0, EAX, 0xE0), *_AMX_AND_HALVES),
    ),
}  # fmt: skip
"""The best that is left."""


def main(arguments: Sequence[str]) -> int:
    if len(arguments) < 2 or arguments[0] not in MASKS:
        sys.exit(f"python -m bench.masked {'|'.join(MASKS)} what Python is to be given")
    if absent := [name for name in ("gcc", "objdump") if not shutil.which(name)]:
        sys.exit(f"bench.masked: {' and '.join(absent)} cannot be found; install gcc and binutils")
    # Beside the environment: most of the copy are links to its files.
    folder = Path(tempfile.mkdtemp(prefix=".masked-", dir=Path(sys.prefix).parent))
    try:
        return _run(MASKS[arguments[0]], folder, arguments[1:])
    finally:
        shutil.rmtree(folder)


def _run(mask: Mask, folder: Path, arguments: Sequence[str]) -> int:
    copy = folder / "environment"
    shutil.copytree(sys.prefix, copy, symlinks=True, copy_function=os.link)
    packages = copy / Path(sysconfig.get_path("purelib")).relative_to(sys.prefix)
    for file in _libraries(packages):
        set_traps(file)
    handler, cpuinfo = folder / "masked.so", folder / "cpuinfo"
    source = Path(__file__).with_suffix(".c")
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", str(handler), str(source), "-ldl"], check=True)
    cpuinfo.write_text(mask.flags.sub("", Path("/proc/cpuinfo").read_text()))
    masked = {
        "LD_PRELOAD": str(handler),
        "MASKED_BITS": ",".join(f"{leaf:x}:{sub:x}:{place:x}:{bits:x}" for leaf, sub, place, bits in mask.bits),
        "MASKED_CPUINFO": str(cpuinfo),
    }
    return subprocess.run([str(copy / "bin" / "python"), *arguments], env=os.environ | masked, check=False).returncode


def _libraries(packages: Path) -> list[Path]:
    files = [file for name in LIBRARIES for file in (packages / name).glob("*.so*") if not file.is_symlink()]
    return [file for file in files if _CPUID in file.read_bytes()]


def set_traps(library: Path) -> None:
    """Replace each CPUID of a library by a trap and a byte that does nothing. The file is a new one afterwards."""
    code = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", str(library)], capture_output=True, text=True, check=True
    ).stdout
    headers = subprocess.run(["objdump", "-h", str(library)], capture_output=True, text=True, check=True).stdout
    patched = trapped(library.read_bytes(), offsets(code.splitlines(), headers.splitlines()))
    mode = library.stat().st_mode
    library.unlink()  # the environment's own file must stay as it is
    library.write_bytes(patched)
    library.chmod(mode)


def offsets(code: Iterable[str], headers: Iterable[str]) -> list[int]:
    """Where in the file the CPUIDs of a disassembly lie, by the sections' addresses."""
    rows = [line.split() for line in headers]
    sections = [[int(field, 16) for field in (row[3], row[2], row[5])] for row in rows if row and row[0].isdigit()]
    found = [int(match[1], 16) for match in map(_FOUND.match, code) if match]
    return [
        place - address + offset
        for place in found
        for address, size, offset in sections
        if address <= place < address + size
    ]


def trapped(library: bytes, places: Sequence[int]) -> bytes:
    """The library with traps at ``places``. Raises ValueError where one is no CPUID."""
    changed = bytearray(library)
    for place in places:
        if changed[place : place + 2] != _CPUID:
            raise ValueError(f"no CPUID at {place}")
        changed[place : place + 2] = _TRAP
    return bytes(changed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
