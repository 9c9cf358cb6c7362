"""The accelerator without a warning of `verilator -Wall`, kernel included."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
from rtl_harness import ROOT, unavailable

TOP = "rasna_accelerator"


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    import build_rtl

    try:
        kernel = build_rtl.generate("tiny", ROOT / "build")
    except build_rtl.BuildError as error:
        unavailable(str(error))
    return build_rtl.rtl_sources(kernel)


def verilator(sources, *flags) -> str:
    import build_rtl

    command = ["verilator", "--lint-only", "-Wall", "-Wno-fatal", "--quiet", *flags,
               "--top-module", TOP, f"-I{ROOT / 'rtl'}", *map(str, sources)]
    environment = build_rtl.verilator_environment()
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    return "\n".join(x for x in (done.stdout + done.stderr).splitlines() if x.startswith("%"))


def test_verilator_has_no_warning(sources):
    assert verilator(sources) == ""


def test_a_width_that_does_not_fit_is_warned_of(sources, tmp_path):
    right = next(p for p in sources if p.name == "hls_fifo.sv")
    wrong = tmp_path / "hls_fifo.sv"
    text = right.read_text()
    assert text.count("write_ptr_reg + 1'b1") == 1
    wrong.write_text(text.replace("write_ptr_reg + 1'b1", "write_ptr_reg + 40'b1"))
    found = verilator([wrong if p == right else p for p in sources])
    assert re.search(r"WIDTH\w*", found)


def test_icarus_accepts_the_library():
    if shutil.which("iverilog") is None:
        pytest.skip("iverilog is not installed")
    for path in sorted((ROOT / "rtl" / "lib").glob("*.sv")):
        done = subprocess.run(
            ["iverilog", "-g2012", "-Wall", "-t", "null", "-s", path.stem, "-y", str(path.parent),
             "-Y", ".sv", str(path)], capture_output=True, text=True,
        )
        assert done.returncode == 0, done.stderr
        lines = [x for x in done.stderr.splitlines() if "timescale" not in x]
        assert not lines, done.stderr
