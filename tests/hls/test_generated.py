"""The generated files follow from isa.py and targets.py, and decode what isa.py encodes."""

from __future__ import annotations

import importlib.util
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rasna import isa

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "generate.py"


def load_generator():
    spec = importlib.util.spec_from_file_location("generate", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_check(root: Path) -> subprocess.CompletedProcess:
    command = [sys.executable, str(SCRIPT), "--check", "--root", str(root)]
    return subprocess.run(command, capture_output=True, text=True)


def test_committed_files_are_up_to_date():
    result = run_check(ROOT)
    assert (result.returncode, result.stdout) == (0, "")


def test_check_names_a_file_that_drifted(tmp_path):
    generator = load_generator()
    assert generator.main(["--root", str(tmp_path)]) == 0
    header = tmp_path / "hls" / "isa.h"
    header.write_text(header.read_text().replace("OPCODE_TAPS = 5", "OPCODE_TAPS = 6"))
    result = run_check(tmp_path)
    message = "hls/isa.h: not up to date, regenerate with python scripts/generate.py\n"
    assert (result.returncode, result.stdout) == (1, message)


def decode_program(generator) -> str:
    """A C++ program that reads 8 words per record and prints every decoded field."""
    body = []
    for i, (_, function, _, fields, _) in enumerate(generator.records()):
        body.append(f"    if (kind == {i}) {{ auto r = rasna::decode_{function}(words);")
        body += [f'      printf("%lld ", (long long)r.{f.name});' for f in fields]
        body.append("    }")
    return "\n".join([
        '#include <stdio.h>', '#include "isa.h"', "int main() {", "  int kind;",
        '  while (scanf("%d", &kind) == 1) {', "    uint64_t words[8];",
        '    for (int i = 0; i < 8; i++) if (scanf("%lu", &words[i]) != 1) return 1;',
        *body, '    printf("\\n");', "  }", "  return 0;", "}",
    ])


@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")
def test_decode_functions_return_what_isa_encodes(tmp_path):
    generator, rng = load_generator(), random.Random(7)
    source = tmp_path / "decode.cpp"
    source.write_text(decode_program(generator))
    binary = tmp_path / "decode"
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-Wno-unused-variable"]
    subprocess.run(
        ["g++", *flags, f"-I{ROOT / 'hls'}", "-o", str(binary), str(source)], check=True
    )
    lines, expected = [], []
    for kind, (_, function, _, fields, num_words) in enumerate(generator.records()):
        for trial in range(40):
            values = {f.name: rng.randint(f.lo, f.hi) for f in fields}
            if trial < 2:
                values = {f.name: (f.lo, f.hi)[trial] for f in fields}
            words = isa.pack(fields, num_words, function, **values)
            noise = [rng.getrandbits(64) for _ in range(8 - num_words)]
            lines.append(" ".join(map(str, [kind, *words, *noise])))
            expected.append(" ".join(str(values[f.name]) for f in fields))
    result = subprocess.run(
        [str(binary)], input="\n".join(lines), capture_output=True, text=True, check=True
    )
    got = [line.strip() for line in result.stdout.splitlines()]
    assert len(got) == len(expected) == 40 * len(generator.records())
    assert got == expected
