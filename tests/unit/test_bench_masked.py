"""The parts of ``bench.masked`` that need no compiler: which bytes become traps, and what is masked."""

from __future__ import annotations

import pytest

from bench.masked import MASKS, offsets, trapped

CODE = """
/lib/a.so:     file format elf64-x86-64

Disassembly of section .text:

0000000000001000 <_init>:
    1000:\tsub    $0x8,%rsp
    1004:\tcpuid
    1006:\tret
    2010:\tcpuid
""".splitlines()
HEADERS = """
Sections:
Idx Name          Size      VMA               LMA               File off  Algn
  0 .init         00000100  0000000000001000  0000000000001000  00000200  2**2
                  CONTENTS, ALLOC, LOAD, READONLY, CODE
  1 .text         00000100  0000000000002000  0000000000002000  00000400  2**2
""".splitlines()
FLAGS = "flags: sse2 avx avx2 fma avx_vnni avx512f avx512_bf16 avx512_vnni amx_tile amx_bf16"


def test_instructions_are_found_where_their_sections_lie_in_the_file() -> None:
    assert offsets(CODE, HEADERS) == [0x204, 0x410]


def test_only_the_instructions_become_traps() -> None:
    assert trapped(b"\x0f\xa2\x0f\xa2\x90", [2]) == b"\x0f\xa2\xcc\x90\x90"
    with pytest.raises(ValueError, match="no CPUID at 1"):
        trapped(b"\x0f\xa2\x0f", [1])


@pytest.mark.parametrize(
    ("name", "left"),
    [("avx2", "sse2 avx avx2 fma"), ("avx512", "sse2 avx avx2 fma avx_vnni avx512f avx512_vnni")],
)
def test_what_a_lesser_processor_lacks_is_not_among_its_flags(name: str, left: str) -> None:
    assert MASKS[name].flags.sub("", FLAGS).split() == ["flags:", *left.split()]
