"""sim/processor.cpp: which loops a processor and its operating system can run."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

import build_sim
import pytest

OSXSAVE, AVX = 1 << 27, 1 << 28  # leaf 1, ECX
AVX2, AVX512F, AVX512VL = 1 << 5, 1 << 16, 1 << 31  # leaf 7, EBX
VNNI = 1 << 11  # leaf 7, ECX
SSE_AVX_STATE, AVX512_STATE = 0x06, 0xE0  # XCR0
ALL = {
    "leaf_1_ecx": OSXSAVE | AVX, "leaf_7_ebx": AVX2 | AVX512F | AVX512VL, "leaf_7_ecx": VNNI,
    "xcr0": SSE_AVX_STATE | AVX512_STATE,
}  # fmt: skip


@pytest.fixture(scope="module")
def show(tmp_path_factory):
    """show(*words) → (avx2, avx512_vnni) of the words, or of this processor."""
    try:
        compiler, _ = build_sim.find_compiler(os.environ.get("CXX"))
    except build_sim.BuildError as error:
        pytest.skip(str(error))
    program = tmp_path_factory.mktemp("processor") / "show"
    sim = build_sim.ROOT / "sim"
    subprocess.run(
        [compiler, "-std=c++17", "-Wall", "-Wextra", "-Werror", f"-I{sim}",
         str(sim / "processor.cpp"), str(Path(__file__).parent / "show_processor.cpp"),
         "-o", str(program)], check=True,
    )  # fmt: skip

    def run(*words: int) -> tuple[bool, bool]:
        done = subprocess.run(
            [str(program), *(f"{w:x}" for w in words)], capture_output=True, text=True, check=True
        )
        avx2, vnni = done.stdout.split()
        return avx2 == "1", vnni == "1"

    return run


def test_a_processor_with_everything_has_both(show):
    assert show(*ALL.values()) == (True, True)


@pytest.mark.parametrize(
    ("word", "bit", "expected"),
    [
        ("leaf_1_ecx", OSXSAVE, (False, False)),
        ("leaf_1_ecx", AVX, (False, False)),
        ("leaf_7_ebx", AVX2, (False, False)),
        ("leaf_7_ebx", AVX512F, (True, False)),
        ("leaf_7_ebx", AVX512VL, (True, False)),
        ("leaf_7_ecx", VNNI, (True, False)),
        ("xcr0", 1 << 1, (False, False)),
        ("xcr0", 1 << 2, (False, False)),
        ("xcr0", 1 << 5, (True, False)),
        ("xcr0", 1 << 6, (True, False)),
        ("xcr0", 1 << 7, (True, False)),
    ],
)
def test_every_bit_is_needed(show, word, bit, expected):
    """The state bits too: the processor can do more than the operating system saves."""
    assert show(*{**ALL, word: ALL[word] & ~bit}.values()) == expected


def test_other_bits_do_not_matter(show):
    only = [OSXSAVE | AVX, AVX2, 0, SSE_AVX_STATE]
    assert show(*only) == (True, False)
    assert show(0xFFFFFFFF & ~OSXSAVE, *[0xFFFFFFFF] * 3) == (False, False)


@pytest.mark.skipif(
    platform.machine() != "x86_64" or not Path("/proc/cpuinfo").exists(),
    reason="needs /proc/cpuinfo of an x86-64 processor",
)
def test_this_processor_has_what_linux_says(show):
    flags = next(
        line.split(":")[1].split() for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("flags")
    )
    vnni = {"avx2", "avx512f", "avx512vl", "avx512_vnni"} <= set(flags)
    assert show() == ("avx2" in flags, vnni)
