"""Every block of rtl/lib by itself under cocotb, in several sizes. WAVES=1 keeps waveforms in build/cocotb."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from cocotb_harness import ROOT, build, check_results, cocotb_environment, run_bench

LIB = ROOT / "rtl" / "lib"
# A queue and a bus always, 20 s of a processor each; the others in the long run.
ALWAYS = [
    ("hls_fifo", {"WIDTH": 8, "DEPTH": 2}),
    ("hls_axi_read", {"DATA_BITS": 32, "MAX_BURST": 16, "BUFFER_BEATS": 20, "NUM_REQUESTS": 2}),
]
MORE = [
    ("hls_ram", {"WIDTH": 13, "DEPTH": 24, "ADDR_BITS": 5}),
    ("hls_fifo", {"WIDTH": 64, "DEPTH": 5}),
    ("hls_fifo", {"WIDTH": 1, "DEPTH": 1}),
    ("hls_ram", {"WIDTH": 4, "DEPTH": 6, "ADDR_BITS": 3, "INIT_BITS": 24, "INIT": "24'hfedcba"}),
    ("hls_rom", {"WIDTH": 5, "DEPTH": 7, "ADDR_BITS": 3, "INIT": "35'h5a5123456"}),
    ("hls_axi_read", {}),
    ("hls_axi_write", {}),
    ("hls_axi_write", {"DATA_BITS": 32, "MAX_BURST": 16, "BUFFER_BEATS": 20, "NUM_REQUESTS": 2}),
    ("hls_axil", {"ADDR_BITS": 6}),
    ("hls_deadlock", {"NUM": 2, "CYCLES": 20}),
]
DEFINES = {"hls_deadlock": ["HLSC_DEADLOCK_CONTINUE"]}


# Ports that the models of cocotbext-axi need and a master with one transaction order has not.
IDS = {
    "hls_axi_read": ("output wire m_axi_arid", "input wire m_axi_rid"),
    "hls_axi_write": ("output wire m_axi_awid", "input wire m_axi_bid"),
}


def with_ids(top: str, folder: Path) -> tuple[str, list[Path]]:
    """Name and file of a module around a bus master that has the ID ports as well."""
    text = (LIB / f"{top}.sv").read_text()
    header = re.search(rf"module {top} #\((.*?)\n\) \((.*?)\n\);", text, re.S)
    parameters, ports = header[1], header[2]
    names = re.findall(r"parameter int (\w+)", parameters)
    master_id = re.findall(r"\w+$", IDS[top][0])[0]
    lines = [
        f"module bench_top #({parameters}) ({ports},", f"  {IDS[top][0]}, {IDS[top][1]});",
        f"  assign {master_id} = 1'b0;",
        f"  {top} #({', '.join(f'.{n}({n})' for n in names)}) block (.*);", "endmodule",
    ]
    path = folder / "bench_top.sv"
    path.write_text("\n".join(lines) + "\n")
    return "bench_top", [path]


def name(case) -> str:
    return "-".join([case[0], *(str(v) for v in case[1].values())])


def test_every_block_has_a_bench():
    assert {top for top, _ in [*ALWAYS, *MORE]} == {path.stem for path in LIB.glob("*.sv")}


@pytest.mark.parametrize("case", [*ALWAYS, *(pytest.param(c, marks=pytest.mark.long) for c in MORE)], ids=name)
def test_block(case, tmp_path):
    top, parameters = case
    environment, waves = cocotb_environment(), os.environ.get("WAVES") == "1"
    folder = ROOT / "build" / "cocotb" / name(case).replace("'", "") if waves else tmp_path
    folder.mkdir(parents=True, exist_ok=True)
    module, extra = with_ids(top, folder) if top in IDS else (top, [])
    sources = [*sorted(LIB.glob("*.sv")), *extra]
    build(module, sources, folder, environment, parameters, waves, DEFINES.get(top, []))
    run_bench(module, f"bench_{top.removeprefix('hls_')}", folder, environment, waves)
    assert not waves or any(folder.rglob("*.vcd"))


def test_results_without_tests_or_with_a_failure_are_noticed():
    good = "<testsuite><testcase/><testcase/></testsuite>"
    check_results(good, 2)
    for text, expected in (
        (good, 3), (good, 1), ("<testsuite/>", 0),
        ("<testcase/><testcase><failure/></testcase>", 2),
        ("<testcase/><testcase><skipped/></testcase>", 2),
    ):
        with pytest.raises(AssertionError):
            check_results(text, expected)


@pytest.mark.long
def test_a_bench_that_compares_nothing_fails(tmp_path):
    environment = cocotb_environment()
    build("hls_rom", sorted(LIB.glob("*.sv")), tmp_path, environment, dict(MORE)["hls_rom"])
    with pytest.raises(AssertionError, match="this test has compared nothing"):
        run_bench("hls_rom", "bench_nothing", tmp_path, environment)
